"""Linkers of ops whose thunks are compiled with the package, completely or without their loops.

thunks_ext.cpp has the thunks. `precompiled_ops` links the ops with complete thunks; these ops need
no compiler. For an Elemwise or a CAReduce, `loops` and `reductions` generate only the C code of the
loops. `headers` declares the headers that the loops need. `shipped_loops` finds compiled loops that
the environment contains. `loop_modules` makes a module of other loops, which g++ compiles. While
g++ compiles the loops of an Elemwise, `chains` computes it by shipped loops. `op_descriptions`
describes the op to thunks_ext.cpp. `threads` sets how many threads share large loops and products.

Importing this package also sets the thresholds of malloc, because thunks allocate the arrays.
"""

from theano import config
from theano.misc.malloc import keep_freed
from theano.tensor.linkers.loop_modules import Loops, LoopsModule
from theano.tensor.linkers.loops import LoopsLinker
from theano.tensor.linkers.precompiled_ops import OP_DATA, PrecompiledLinker
from theano.tensor.linkers.reductions import ReductionLinker
from theano.tensor.linkers.threads import count_threads

__all__ = [
    "OP_DATA",
    "Loops",
    "LoopsLinker",
    "LoopsModule",
    "PrecompiledLinker",
    "ReductionLinker",
    "count_threads",
]

keep_freed(config.malloc.keep)
