"""Provide the type of theano.sandbox.cuda, and read pickles that contain it."""

from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__"]
