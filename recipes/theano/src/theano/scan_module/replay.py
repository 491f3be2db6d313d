"""Analysis of a Scan's inner function for the replay of its steps (thunks/replay.h)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from theano.compile.ops import Shape_i
from theano.gof import Constant
from theano.tensor import AllocEmpty, TensorType

if TYPE_CHECKING:
    from theano.gof import Apply, Variable
    from theano.scan_module.scan_op import Scan


class MemoryUse:
    """The memory that the nodes of a Scan's compiled inner function use.

    Attributes:
        roots: by output of a node, the variables whose memory it may share. A variable that shares
            no memory is its own root.
        users: by root, the nodes that use its memory.
        written: the roots whose memory nodes change in-place.
        cleared: the variables whose storages the virtual machine clears before a call.
    """

    def __init__(self, scan: Scan) -> None:
        fn = scan.fn.fn
        self.roots: dict[Variable, set[Variable]] = {}
        self.users: dict[Variable, set[Apply]] = defaultdict(set)
        self.written: set[Variable] = set()
        cells = {id(cell) for cell in fn.pre_call_clear}
        self.cleared = {var for var, cell in fn.storage_map.items() if id(cell) in cells}
        for node in fn.nodes:
            self._add(node)

    def find_roots(self, var: Variable) -> set[Variable]:
        """Return the roots of a variable."""
        return self.roots.get(var, {var})

    def _add(self, node: Apply) -> None:
        """Add a node; the nodes that compute its inputs were added before."""
        views = getattr(node.op, "view_map", {})
        destroyed = getattr(node.op, "destroy_map", {})
        for i, output in enumerate(node.outputs):
            shared = [node.inputs[j] for j in views.get(i, []) + destroyed.get(i, [])]
            self.roots[output] = set().union(*map(self.find_roots, shared)) or {output}
        for inputs in destroyed.values():
            self.written.update(*(self.find_roots(node.inputs[i]) for i in inputs))
        for var in node.inputs + node.outputs:
            for root in self.find_roots(var):
                self.users[root].add(node)


def find_invariant_nodes(
    scan: Scan, memory: MemoryUse, *, same_dimensions: bool = False
) -> set[Apply]:
    """Return the nodes of the inner function whose results are the same in all steps.

    Most such nodes were pushed out of the inner graph. The optimization of the inner function adds
    new ones: transposed weights for BLAS, their shapes, and memory for results.

    Args:
        scan: the Scan.
        memory: the memory of its inner function.
        same_dimensions: whether all arrays have the same dimensions in all steps.

    Returns:
        Nodes with the same inputs in all steps, whose outputs keep their values: they are not
        outputs of the inner function. If a node changes memory in-place, either all nodes that use
        the memory are returned, or none. Any node may change the memory of AllocEmpty, because its
        content is undefined.
    """
    fn, fgraph = scan.fn.fn, scan.fn.maker.fgraph
    replaced = memory.cleared.union(fgraph.outputs)
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
                and replaced.isdisjoint(node.outputs)
            ):
                nodes.add(node)
                invariant.update(node.outputs)
        shared = {root for root in memory.written if not memory.users[root] <= nodes}
        failures = {
            node
            for node in nodes
            if not isinstance(node.op, AllocEmpty)
            and any(memory.roots[var] & shared for var in node.outputs)
        }
        if not failures:
            return nodes
        excluded |= failures


def describe(scan: Scan) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Return the arguments of thunks_ext.make_replay for a Scan: its variables and nodes."""
    fn, fgraph = scan.fn.fn, scan.fn.maker.fgraph
    memory = MemoryUse(scan)
    invariant = find_invariant_nodes(scan, memory)
    fixed = find_invariant_nodes(scan, memory, same_dimensions=True)
    constant = {var for node in invariant for var in node.outputs}
    constant.update(scan.inner_non_seqs(fgraph.inputs))
    slots = {*fgraph.inputs, *fgraph.outputs} - constant
    # Scan replaces random states in each step; the virtual machine replaces cleared variables.
    replaced = {
        *memory.cleared,
        *scan.inner_shared(fgraph.inputs),
        *scan.inner_shared_outs(fgraph.outputs),
    }
    variables = list(fn.storage_map)
    numbers = {var: number for number, var in enumerate(variables)}

    def describe_variable(var: Variable) -> tuple[object, ...]:
        root, *others = memory.find_roots(var)
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
