"""theano.graph of Theano-PyMC: alias package of theano.gof."""

from theano.graph import (
    basic,
    callcache,
    destroyhandler,
    fg,
    null_type,
    op,
    opt,
    optdb,
    params_type,
    sched,
    toolbox,
    type,
    unify,
    utils,
)
