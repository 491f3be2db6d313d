"""theano.graph.fg of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.fg import (
    FunctionGraph,
    InconsistencyError,
    MissingInputError,
)
