"""theano.graph.fg of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.fg import (
    FunctionGraph,
    InconsistencyError,
    MissingInputError,
)
