"""Proves and describes a Theano environment of 2017: this package's Python 2."""

__version__ = "0.1.0"
