"""Alias of theano.tensor.signal.downsample for programs that import this Theano 0.6 module."""

from theano.tensor.signal.downsample import *  # noqa: F403
