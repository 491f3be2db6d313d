"""theano.compile.function.pfunc of Theano-PyMC: alias module of Theano's own objects."""

from theano.compile.pfunc import (
    Param,
    iter_over_pairs,
    pfunc,
    rebuild_collect_shared,
)
