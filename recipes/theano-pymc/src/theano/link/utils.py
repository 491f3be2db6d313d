"""theano.link.utils of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.link import (
    gc_helper,
    map_storage,
    raise_with_op,
    streamline,
)
