"""Linkers of ops whose C code is compiled with the package, in thunks_ext.cpp.

The ops of `precompiled_ops` need no compiler. For an Elemwise or a CAReduce, `loops` and
`reductions` generate C code of the loops alone. It is compiled as a module of `loop_modules`, or
comes compiled with an environment (`shipped_loops`). `op_descriptions` describes the op to
thunks_ext.cpp. `threads` sets the number of threads that share large loops.
"""

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
