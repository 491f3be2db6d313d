"""theano.graph.basic of Theano-PyMC: aliases of Theano's objects, and graph searches as generators."""

from collections import deque

from theano.gof.graph import (
    Apply,
    Constant,
    NoParams,
    Node,
    Variable,
    as_string,
    clone,
    clone_get_equiv,
    default_leaf_formatter,
    default_node_formatter,
    general_toposort,
    io_connection_pattern,
    io_toposort,
    is_in_ancestors,
    list_of_nodes,
    nodes_constructed,
    op_as_string,
    view_roots,
)
from theano.scan_module.scan_utils import (
    equal_computations,
)


def walk(nodes, expand, bfs=True, return_children=False, hash_fn=id):
    """Generate all nodes that can be reached from ``nodes``, without duplicates.

    ``expand`` returns a node's children, or None. The search is breadth-first, or depth-first with
    ``bfs=False``. With ``return_children``, generate pairs of a node and its children.
    """
    waiting = deque(nodes)
    take = waiting.popleft if bfs else waiting.pop
    visited = set()
    while waiting:
        node = take()
        key = hash_fn(node)
        if key in visited:
            continue
        visited.add(key)
        children = expand(node)
        yield (node, children) if return_children else node
        waiting.extend(children or ())


def ancestors(graphs, blockers=None):
    """Generate ``graphs`` and all variables that they depend on, depth-first.

    The search does not go beyond the variables in ``blockers``.
    """

    def inputs(variable):
        if variable.owner and not (blockers and variable in blockers):
            return reversed(variable.owner.inputs)
        return None

    return walk(graphs, inputs, bfs=False)


def graph_inputs(graphs, blockers=None):
    """Generate the ancestors of ``graphs`` that have no owner node: inputs and constants."""
    return (variable for variable in ancestors(graphs, blockers) if variable.owner is None)


def vars_between(ins, outs):
    """Generate the variables of the graph from ``ins`` to ``outs``, both included."""

    def neighbours(variable):
        if variable.owner and variable not in ins:
            return reversed(variable.owner.inputs + variable.owner.outputs)
        return None

    return walk(outs, neighbours)


def orphans_between(ins, outs):
    """Generate the inputs of the graph from ``ins`` to ``outs`` that are not in ``ins``."""
    return (
        variable
        for variable in vars_between(ins, outs)
        if variable.owner is None and variable not in ins
    )


def applys_between(ins, outs):
    """Generate the nodes of the graph from ``ins`` to ``outs``."""
    nodes = (variable.owner for variable in vars_between(ins, outs) if variable not in ins)
    return (node for node in dict.fromkeys(nodes) if node is not None)
