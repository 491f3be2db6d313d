"""Placeholders for the ops of theano.sandbox.cuda.basic_ops.

The transfers, such as gpu_from_host, work. A call of another op raises an error that names the
replacement.
"""

from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__"]
