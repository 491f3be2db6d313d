"""theano.scan.utils of Theano-PyMC: aliases of Theano's objects."""

from theano.scan_module.scan_utils import (
    Validator,
    clone,
    compress_outs,
    expand_empty,
    forced_replace,
    get_updates_and_outputs,
    hash_listsDictsTuples,
    isNaN_or_Inf_or_None,
    map_variables,
    reconstruct_graph,
    safe_new,
    scan_args,
    scan_can_remove_outs,
    traverse,
    until,
)
