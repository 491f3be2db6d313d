"""theano.graph.null_type of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.null_type import (
    NullType,
    null_type,
)
