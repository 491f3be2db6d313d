"""Placeholders for the ops of theano.sandbox.cuda.blas.

A call of an op raises an error that names the replacement.
"""

from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__"]
