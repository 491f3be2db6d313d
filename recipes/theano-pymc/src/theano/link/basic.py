"""theano.link.basic of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.link import (
    Container,
    Linker,
    LocalLinker,
    PerformLinker,
    WrapLinker,
    WrapLinkerMany,
)
