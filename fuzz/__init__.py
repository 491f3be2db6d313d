"""Generate random Theano programs and compare their results; ``./invoke fuzz`` runs it.

``generator`` writes programs with ``grammar``. ``worker`` runs them in an environment. ``twins``
computes their results with NumPy. ``oracles`` compares the results with ``differences``.
``shrinker`` reduces a program whose results differ. The package needs only Theano and runs on
Python 3.9 and later.
"""
