"""theano.graph.opt of Theano-PyMC: aliases of Theano's objects, and an adapted local_optimizer."""

from functools import wraps

from theano_pymc.signatures import pass_fgraph

from theano.gof.opt import (
    ChangeTracker,
    CheckStackTraceOptimization,
    EquilibriumOptimizer,
    FromFunctionLocalOptimizer,
    FromFunctionOptimizer,
    GraphToGPULocalOptGroup,
    LocalMetaOptimizer,
    LocalMetaOptimizerSkipAssertionError,
    LocalOptGroup,
    LocalOptimizer,
    MergeFeature,
    MergeOptimizer,
    NavigatorOptimizer,
    OpKeyOptimizer,
    OpRemove,
    OpSub,
    Optimizer as GlobalOptimizer,
    PatternSub,
    SeqOptimizer,
    TopoOptimizer,
    Updater,
    check_chain,
    check_stack_trace,
    copy_stack_trace,
    in2out,
    inherit_stack_trace,
    inplace_optimizer,
    local_optimizer as local_optimizer_of_node,
    merge_dict,
    optimizer,
    out2in,
    pre_constant_merge,
    pre_greedy_local_optimizer,
)


@wraps(local_optimizer_of_node)
def local_optimizer(*args, **kwargs):
    """Return a decorator that turns ``f(fgraph, node)`` or ``f(node)`` into a local optimizer."""
    decorate = local_optimizer_of_node(*args, **kwargs)
    return lambda function: decorate(pass_fgraph(function))
