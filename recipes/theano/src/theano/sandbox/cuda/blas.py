"""Provide the ops of theano.sandbox.cuda.blas, which raise an error that names today's ops."""

from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__"]
