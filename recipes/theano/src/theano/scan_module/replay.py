"""Analysis of a Scan's inner function for the replay of its steps (thunks/replay.h)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from theano.compile.ops import Shape_i
from theano.gof import Constant
from theano.tensor import AllocEmpty, TensorType

if TYPE_CHECKING:
    from theano.gof import Apply, Variable
    from theano.scan_module.scan_op import Scan

# By output of a node: the variables whose memory it may share. A variable that shares no memory is
# its own root.
Roots = dict["Variable", set["Variable"]]


def find_roots(nodes: Sequence[Apply]) -> Roots:
    """Return the roots of the outputs of nodes, which are in the order of calls."""
    roots: Roots = {}
    for node in nodes:
        views = getattr(node.op, "view_map", {})
        destroyed = getattr(node.op, "destroy_map", {})
        for i, output in enumerate(node.outputs):
            shared = [node.inputs[j] for j in views.get(i, []) + destroyed.get(i, [])]
            roots[output] = set().union(*(roots.get(var, {var}) for var in shared)) or {output}
    return roots


def find_invariant_nodes(scan: Scan, roots: Roots, *, same_dimensions: bool = False) -> set[Apply]:
    """Return the nodes of the inner function whose results are the same in all steps.

    Most such nodes were pushed out of the inner graph. The optimization of the inner function adds
    new ones: transposed weights for BLAS, their shapes, and memory for results.

    Args:
        scan: the Scan.
        roots: the roots of the inner function's variables.
        same_dimensions: whether all arrays have the same dimensions in all steps.

    Returns:
        Nodes with the same inputs in all steps, whose outputs keep their values: they are not
        outputs of the inner function. If a node changes memory in-place, either all nodes that use
        the memory are returned, or none. Any node may change the memory of AllocEmpty, because its
        content is undefined.
    """
    fn, fgraph = scan.fn.fn, scan.fn.maker.fgraph
    cleared = {id(cell) for cell in fn.pre_call_clear}
    users, written = find_users(fn.nodes, roots)

    def persists(var: Variable) -> bool:
        return var not in fgraph.outputs and id(fn.storage_map[var]) not in cleared

    excluded: set[Apply] = set()
    while True:
        invariant = set(scan.inner_non_seqs(fgraph.inputs))
        nodes = set()
        for node in fn.nodes:
            if (
                node not in excluded
                and (
                    all(var in invariant or isinstance(var, Constant) for var in node.inputs)
                    or (same_dimensions and isinstance(node.op, Shape_i))
                )
                and all(persists(var) for var in node.outputs)
            ):
                nodes.add(node)
                invariant.update(node.outputs)
        shared = {root for root in written if not users[root] <= nodes}
        failures = {
            node
            for node in nodes
            if not isinstance(node.op, AllocEmpty)
            and any(roots[var] & shared for var in node.outputs)
        }
        if not failures:
            return nodes
        excluded |= failures


def find_users(
    nodes: Sequence[Apply], roots: Roots
) -> tuple[dict[Variable, set[Apply]], set[Variable]]:
    """Return the nodes that use each root's memory, and the roots that nodes change in-place."""
    users: dict[Variable, set[Apply]] = defaultdict(set)
    written = set()
    for node in nodes:
        for var in node.inputs + node.outputs:
            for root in roots.get(var, {var}):
                users[root].add(node)
        for inputs in getattr(node.op, "destroy_map", {}).values():
            for i in inputs:
                written |= roots.get(node.inputs[i], {node.inputs[i]})
    return users, written


def describe(scan: Scan) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Return the arguments of thunks_ext.make_replay for a Scan: its variables and nodes."""
    fn, fgraph = scan.fn.fn, scan.fn.maker.fgraph
    roots = find_roots(fn.nodes)
    invariant = find_invariant_nodes(scan, roots)
    fixed = find_invariant_nodes(scan, roots, same_dimensions=True)
    constant = {var for node in invariant for var in node.outputs}
    constant.update(scan.inner_non_seqs(fgraph.inputs))
    slots = {*fgraph.inputs, *fgraph.outputs} - constant
    # Random states, and cells that the virtual machine clears before each call.
    replaced = {*scan.inner_shared(fgraph.inputs), *scan.inner_shared_outs(fgraph.outputs)}
    cleared = {id(cell) for cell in fn.pre_call_clear}
    replaced.update(var for var, cell in fn.storage_map.items() if id(cell) in cleared)
    variables = list(fn.storage_map)
    numbers = {var: number for number, var in enumerate(variables)}

    def describe_variable(var: Variable) -> tuple[object, ...]:
        root, *others = roots.get(var, {var})
        return (
            fn.storage_map[var],
            -1 if others else numbers[root],
            isinstance(var.type, TensorType) and var not in replaced,
            isinstance(var, Constant) or var in constant,
            var in slots,
            var in fgraph.outputs,
        )

    def describe_node(node: Apply, thunk: object) -> tuple[object, ...]:
        return (
            getattr(thunk, "cthunk", None),
            tuple(fn.storage_map[var] for var in node.inputs),
            tuple(fn.storage_map[var] for var in node.outputs),
            node in invariant,
            node in fixed,
        )

    return (
        [describe_variable(var) for var in variables],
        [describe_node(*pair) for pair in zip(fn.nodes, fn.thunks, strict=True)],
    )
