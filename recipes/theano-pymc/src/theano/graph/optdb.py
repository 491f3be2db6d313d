"""theano.graph.optdb of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.optdb import (
    DB,
    EquilibriumDB,
    LocalGroupDB,
    ProxyDB,
    Query,
    SequenceDB,
    TopoDB,
)
