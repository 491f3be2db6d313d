"""Alias of theano.compat.python2x for programs that import this Theano 0.6 module."""

from theano.compat.python2x import *  # noqa: F403
