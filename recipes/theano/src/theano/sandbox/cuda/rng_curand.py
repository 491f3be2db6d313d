"""Placeholder for CURAND_RandomStreams: the constructor raises an error with the replacement."""

from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__"]
