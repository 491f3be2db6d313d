"""theano.link.basic of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.link import (
    Container,
    Linker,
    LocalLinker,
    PerformLinker,
    WrapLinker,
    WrapLinkerMany,
)
