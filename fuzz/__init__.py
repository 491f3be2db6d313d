"""Random programs of Theano's, held against what they mean; ``./invoke fuzz`` runs it.

``generating`` writes programs by ``grammar``, ``worker`` runs them inside an environment,
``comparing`` says where two runs differ, and ``shrinking`` makes a program that differs smaller. It
needs nothing but Theano, and runs on stock Theano's Python 3.9 too.
"""
