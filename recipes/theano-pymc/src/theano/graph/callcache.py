"""theano.graph.callcache of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.callcache import (
    CallCache,
)
