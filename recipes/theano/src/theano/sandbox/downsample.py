"""Provide theano.tensor.signal.downsample under its name in Theano 0.6."""

from theano.tensor.signal.downsample import *  # noqa: F403
