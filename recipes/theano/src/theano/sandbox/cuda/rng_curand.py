"""Provide the random numbers of theano.sandbox.cuda, which raise an error that names today's."""

from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__"]
