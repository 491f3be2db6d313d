"""theano.graph.params_type of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.params_type import (
    Params,
    ParamsType,
    c_cpp_keywords,
)
