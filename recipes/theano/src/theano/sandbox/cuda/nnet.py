"""Name today's ops to programs that use those of theano.sandbox.cuda.nnet."""

from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__"]
