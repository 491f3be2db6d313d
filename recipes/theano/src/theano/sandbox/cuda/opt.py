"""Placeholder for theano.sandbox.cuda.opt, whose register_opt registers nothing."""

from theano.gof.opt import local_optimizer
from theano.sandbox.cuda.names import find_name as __getattr__

__all__ = ["__getattr__", "local_optimizer"]
