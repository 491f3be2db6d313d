"""Placeholder for CudaNdarrayType: instances cannot be created, but pickles of them can be read."""

from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__"]
