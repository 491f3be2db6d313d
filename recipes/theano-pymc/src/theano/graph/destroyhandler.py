"""theano.graph.destroyhandler of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.destroyhandler import (
    DestroyHandler,
    ProtocolError,
    fast_inplace_check,
)
