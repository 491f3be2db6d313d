"""Provide the names that Theano 0.6 had for Python 2.4."""

from theano.compat.python2x import *  # noqa: F403
