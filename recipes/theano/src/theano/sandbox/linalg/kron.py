"""Provide theano.tensor.slinalg.kron under its name in Theano 0.6."""

from theano.tensor.slinalg import kron

__all__ = ["kron"]
