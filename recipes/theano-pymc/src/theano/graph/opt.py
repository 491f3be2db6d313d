"""theano.graph.opt of Theano-PyMC: Theano's own objects, and local_optimizer for its signature."""

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
    """Return a decorator that makes a local optimizer of ``f(fgraph, node)``, or of ``f(node)``."""
    decorate = local_optimizer_of_node(*args, **kwargs)
    return lambda function: decorate(pass_fgraph(function))
