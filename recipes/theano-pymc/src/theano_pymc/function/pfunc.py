"""theano.compile.function.pfunc of Theano-PyMC: aliases of Theano's objects."""

from theano.compile.pfunc import (
    Param,
    iter_over_pairs,
    pfunc,
    rebuild_collect_shared,
)
