"""theano.graph.destroyhandler of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.destroyhandler import (
    DestroyHandler,
    ProtocolError,
    fast_inplace_check,
)
