"""theano.link.vm of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.vm import (
    Loop,
    LoopGC,
    Stack,
    VM,
    VM_Linker as VMLinker,
    calculate_reallocate_info,
)
