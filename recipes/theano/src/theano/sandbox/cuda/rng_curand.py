"""Provide the random streams of theano.sandbox.cuda: errors that name today's streams."""

from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__"]
