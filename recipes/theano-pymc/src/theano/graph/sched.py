"""theano.graph.sched of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.sched import (
    key_to_cmp,
    make_dependence_cmp,
    make_depends,
    memodict,
    posort,
    reverse_dict,
    sort_apply_nodes,
    sort_schedule_fn,
)
