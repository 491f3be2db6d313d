"""Placeholders for the classes of variables of theano.sandbox.cuda, for isinstance."""

from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__"]
