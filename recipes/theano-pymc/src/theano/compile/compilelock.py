"""theano.compile.compilelock of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.compilelock import (
    force_unlock,
    lock_ctx,
)
