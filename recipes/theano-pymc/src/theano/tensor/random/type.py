"""theano.tensor.random.type of Theano-PyMC: aliases of Theano's objects."""

from theano.tensor.raw_random import (
    RandomStateType,
    random_state_type,
)
