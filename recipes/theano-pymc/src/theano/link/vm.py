"""theano.link.vm of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.vm import (
    Loop,
    LoopGC,
    Stack,
    VM,
    VM_Linker as VMLinker,
    calculate_reallocate_info,
)
