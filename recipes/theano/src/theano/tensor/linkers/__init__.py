"""Linkers of ops of which C code is compiled with the package: thunks_ext.cpp.

What `ready` links needs no compiler. Of an Elemwise and a CAReduce, `loops` and `reductions` have
the loops compiled, as modules of `modules`, or those of `common`, which come with an environment.
"""

from theano.tensor.linkers.loops import LoopsLinker
from theano.tensor.linkers.modules import Loops, LoopsModule
from theano.tensor.linkers.ready import READY, ReadyLinker
from theano.tensor.linkers.reductions import ReductionLinker

__all__ = ["READY", "Loops", "LoopsLinker", "LoopsModule", "ReadyLinker", "ReductionLinker"]
