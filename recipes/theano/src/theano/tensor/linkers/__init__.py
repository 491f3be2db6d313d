"""Linkers of ops whose thunks are compiled with the package, completely or without their loops.

thunks_ext.cpp has the thunks. `precompiled_ops` links the ops with complete thunks; these ops need
no compiler. For an Elemwise or a CAReduce, `loops` and `reductions` generate only the C code
of the loops. `headers` declares the headers that the loops need. `loop_modules` makes a module of
the loops, or the environment contains the compiled loops (`shipped_loops`). While g++ compiles the
loops of an Elemwise, `chains` computes it by shipped loops. `op_descriptions` describes the op to
thunks_ext.cpp. `threads` sets how many threads share large loops and products.
"""

from theano.misc import malloc
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
    "malloc",
]
