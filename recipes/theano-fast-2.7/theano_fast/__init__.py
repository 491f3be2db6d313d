"""Verify and describe a Theano environment of the stacks of 2017, in Python 2.7."""

__version__ = "0.1.0"
