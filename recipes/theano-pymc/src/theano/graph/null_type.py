"""theano.graph.null_type of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.null_type import (
    NullType,
    null_type,
)
