"""theano.tensor.random.var of Theano-PyMC: alias module of Theano's own objects."""

from theano.tensor.shared_randomstreams import (
    RandomStateSharedVariable,
    randomstate_constructor,
)
