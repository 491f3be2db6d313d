"""Placeholders for theano.sandbox.cuda's classes of variables, for calls of isinstance."""

from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__"]
