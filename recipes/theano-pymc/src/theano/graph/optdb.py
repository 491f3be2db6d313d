"""theano.graph.optdb of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.optdb import (
    DB,
    EquilibriumDB,
    LocalGroupDB,
    ProxyDB,
    Query,
    SequenceDB,
    TopoDB,
)
