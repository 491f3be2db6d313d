"""Provide the variables of theano.sandbox.cuda, which have no instances."""

from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__"]
