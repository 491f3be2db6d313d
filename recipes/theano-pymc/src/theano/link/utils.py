"""theano.link.utils of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.link import (
    gc_helper,
    map_storage,
    raise_with_op,
    streamline,
)
