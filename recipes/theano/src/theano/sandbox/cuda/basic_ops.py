"""Provide the transfers of theano.sandbox.cuda, and its ops, which raise an error when called."""

from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__"]
