"""theano.graph.callcache of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.callcache import (
    CallCache,
)
