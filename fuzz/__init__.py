"""Differential fuzzer: generate random Theano programs and compare their results.

``./invoke fuzz`` runs the fuzzer. ``generator`` writes programs with the modules of ``grammar``.
``worker`` runs programs with Theano. ``twins`` computes their results with NumPy. ``oracles``
compares the results, with the functions of ``differences``. ``shrinker`` reduces a program whose
results differ. The package needs only Theano, and runs on Python 3.9 and later.
"""
