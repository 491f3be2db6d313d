"""theano.tensor.random.type of Theano-PyMC: alias module of Theano's own objects."""

from theano.tensor.raw_random import (
    RandomStateType,
    random_state_type,
)
