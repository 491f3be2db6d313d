"""Provide the registry of theano.sandbox.cuda's optimizers, which registers nothing."""

from theano.gof.opt import local_optimizer
from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__", "local_optimizer"]
