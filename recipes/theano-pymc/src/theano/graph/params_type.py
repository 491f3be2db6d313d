"""theano.graph.params_type of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.params_type import (
    Params,
    ParamsType,
    c_cpp_keywords,
)
