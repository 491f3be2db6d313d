"""theano.compile.compilelock of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.compilelock import (
    force_unlock,
    lock_ctx,
)
