"""Description of a Scan's inner function for the replay of its steps (thunks/replay.h)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from theano.compile.ops import Shape_i
from theano.gof import Constant
from theano.gof.memory_use import MemoryUse
from theano.tensor import AllocEmpty, TensorType

if TYPE_CHECKING:
    from theano.gof import Apply, Variable
    from theano.scan_module.scan_op import Scan


def find_cleared(fn: Any) -> set[Variable]:
    """Return the variables whose storages a virtual machine clears before a call."""
    storages = {id(storage) for storage in fn.pre_call_clear}
    return {var for var, storage in fn.storage_map.items() if id(storage) in storages}


def find_invariant_nodes(
    scan: Scan, memory: MemoryUse, *, same_dimensions: bool = False
) -> set[Apply]:
    """Return the nodes of the inner function whose results are the same in all steps.

    Theano's optimizers push most of these nodes out of the inner graph. But the optimization of the
    inner function adds new nodes of this kind: transposed weights for BLAS, their shapes, and
    memory for results.

    Args:
        scan: the Scan.
        memory: the memory that the nodes of its inner function use.
        same_dimensions: whether all arrays have the same dimensions in all steps.

    Returns:
        The nodes that have the same inputs in all steps and whose outputs are not replaced: they
        are neither outputs of the inner function nor cleared. If a node changes memory in-place,
        either all nodes that use this memory are returned, or none. AllocEmpty is an exception: its
        node is returned even if other nodes change its memory, because this memory has undefined
        content.
    """
    fn, fgraph = scan.fn.fn, scan.fn.maker.fgraph
    replaced = find_cleared(fn).union(fgraph.outputs)
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
        # The memory that a node changes in-place and that a node outside of `nodes` uses.
        shared = {root for root in memory.written if not memory.users[root] <= nodes}
        rejected = {
            node
            for node in nodes
            if not isinstance(node.op, AllocEmpty)
            and any(memory.roots[var] & shared for var in node.outputs)
        }
        if not rejected:
            return nodes
        excluded |= rejected


def describe_scan(scan: Scan) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Return the arguments of thunks_ext.make_replay for a Scan.

    Returns:
        The descriptions of the variables and of the nodes of the inner function. The functions
        describe_variable and describe_node below show the elements of a description.
    """
    fn, fgraph = scan.fn.fn, scan.fn.maker.fgraph
    memory, cleared = MemoryUse(fn.nodes), find_cleared(fn)
    invariant = find_invariant_nodes(scan, memory)
    fixed = find_invariant_nodes(scan, memory, same_dimensions=True)
    constant = {var for node in invariant for var in node.outputs}
    constant.update(scan.inner_non_seqs(fgraph.inputs))
    slots = {*fgraph.inputs, *fgraph.outputs} - constant
    # The variables whose objects change in each step: Scan replaces random states, and the virtual
    # machine clears variables.
    replaced = {
        *cleared,
        *scan.inner_shared(fgraph.inputs),
        *scan.inner_shared_outs(fgraph.outputs),
    }
    variables = list(fn.storage_map)
    numbers = {var: number for number, var in enumerate(variables)}

    def describe_variable(var: Variable) -> tuple[object, ...]:
        root, *other_roots = memory.find_roots(var)
        # The replay puts a view back into the storage that the virtual machine clears.
        is_cleared_view = var in cleared and root is not var and not other_roots
        return (
            fn.storage_map[var],
            # The number of the variable whose memory `var` shares, or -1 for several variables.
            -1 if other_roots else numbers[root],
            # Whether a recording may use `var`: a tensor that is not replaced, or a cleared view.
            isinstance(var.type, TensorType) and (var not in replaced or is_cleared_view),
            # Whether `var` has the same value in all steps.
            isinstance(var, Constant) or var in constant,
            # Whether `var` is an input or output of the inner function that changes in each step.
            var in slots,
            var in fgraph.outputs,
        )

    def describe_node(node: Apply, thunk: object) -> tuple[object, ...]:
        return (
            getattr(thunk, "cthunk", None),
            tuple(fn.storage_map[var] for var in node.inputs),
            tuple(fn.storage_map[var] for var in node.outputs),
            node in invariant,
            # Whether its results stay the same while all arrays keep their dimensions.
            node in fixed,
        )

    return (
        [describe_variable(var) for var in variables],
        [describe_node(*pair) for pair in zip(fn.nodes, fn.thunks, strict=True)],
    )
