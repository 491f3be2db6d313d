"""Alias of theano.tensor.slinalg.kron for programs that import it from here, as in Theano 0.6."""

from theano.tensor.slinalg import kron

__all__ = ["kron"]
