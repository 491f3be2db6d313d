"""theano.tensor.random.var of Theano-PyMC: aliases of Theano's objects."""

from theano.tensor.shared_randomstreams import (
    RandomStateSharedVariable,
    randomstate_constructor,
)
