"""Graphs of Scans copied, merged and hashed, each node once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from theano import gof

if TYPE_CHECKING:
    from theano.gof import Apply, Variable


def copy_graph(
    variables: Iterable[Variable],
    copies: dict[Variable, Variable],
    strict: bool,
    share_inputs: bool,
) -> dict[Variable, Variable]:
    """Add a copy of each of the variables, and of all they depend on, to copies.

    Args:
        copies: what is copied already, or is to be replaced, with its copy.
        strict: as for Apply.clone_with_new_inputs.
        share_inputs: if True, a variable without owner is its own copy; but a constant that belongs
            to a FunctionGraph is copied, as it cannot belong to two.

    Returns:
        copies.
    """
    # A loop and not a recursion: scans are cloned often, and graphs are deep.
    left = list(variables)
    while left:
        var = left[-1]
        if var in copies:
            left.pop()
        elif var.owner is None:
            if not share_inputs or (isinstance(var, gof.Constant) and hasattr(var, "fgraph")):
                copies[var] = var.clone()
            else:
                copies[var] = var
        else:
            node = var.owner
            missing = [inp for inp in node.inputs if inp not in copies]
            if missing:
                left.extend(missing)
            else:
                copied = node.clone_with_new_inputs(
                    [copies[inp] for inp in node.inputs], strict=strict
                )
                for out, copied_out in zip(node.outputs, copied.outputs, strict=True):
                    copies.setdefault(out, copied_out)
    return copies


def merge_graph(inputs: Iterable[Variable], outputs: Iterable[Variable]) -> list[Variable]:
    """Return the outputs, computed without doing anything twice.

    Nodes with equal ops and the same inputs, and constants with equal signatures, become one, as
    MergeOptimizer makes them in a FunctionGraph.
    """
    merged: dict[Variable, Variable] = {}
    # Constants by their signatures, and nodes by their ops and inputs.
    seen: dict[Any, Any] = {}

    def merge(var: Variable) -> Variable:
        if var in merged:
            return merged[var]
        if isinstance(var, gof.Constant):
            return seen.setdefault(var.merge_signature(), var)
        return var

    for node in gof.graph.io_toposort(inputs, outputs):
        new_inputs = [merge(inp) for inp in node.inputs]
        key = (node.op, tuple(new_inputs))
        if key not in seen:
            unchanged = new_inputs == node.inputs
            seen[key] = node if unchanged else node.clone_with_new_inputs(new_inputs)
        only: Apply = seen[key]
        merged.update(zip(node.outputs, only.outputs, strict=True))
    return [merge(out) for out in outputs]


def replace_computations(
    outputs: Sequence[Variable], computed: Sequence[Variable], variables: Iterable[Variable]
) -> list[Variable]:
    """Return the outputs, of graphs that have variables in place of what these graphs compute.

    Args:
        computed: a computation for each of the variables; what has no owner is not replaced.
    """
    both = [*outputs, *computed]
    merged = merge_graph(gof.graph.inputs(both), both)
    new, old = merged[: len(outputs)], merged[len(outputs) :]
    copies: dict[Variable, Variable] = {}
    for each, variable in zip(old, variables, strict=True):
        if each.owner is not None:
            copies.setdefault(each, variable)
    copy_graph(new, copies, strict=True, share_inputs=True)
    return [copies[each] for each in new]


def copy_scan(
    node: Apply,
    copies: dict[Variable, Variable],
    sequences: Mapping[Variable, Variable],
    others: Mapping[Variable, Variable],
) -> list[Variable]:
    """Return the outputs of a copy of a Scan whose steps are given more.

    Args:
        copies: of the inputs of its steps, and of what is to be replaced in them.
        sequences: new inputs that have other values in each step, with what these are outside.
        others: new inputs that have the same, with what these are outside.
    """
    scan: Any = node.op
    copy_graph(scan.outputs, copies, strict=True, share_inputs=True)
    new_scan = type(scan)(
        [*sequences, *(copies[x] for x in scan.inputs), *others],
        [copies[x] for x in scan.outputs],
        {**scan.info, "n_seqs": scan.n_seqs + len(sequences)},
    )
    steps, *inputs = node.inputs
    outputs: list[Variable] = new_scan(
        steps, *sequences.values(), *inputs, *others.values(), return_list=True
    )
    return outputs


def hash_computations(outputs: Iterable[Variable], inputs: Iterable[Variable] = ()) -> list[int]:
    """Hash graphs so that those which equal_computations finds equal share it.

    Args:
        inputs: where the graphs begin; they count by their position.

    Returns:
        one hash for each output.
    """
    hashes: dict[Variable, int] = {inp: hash((0, i)) for i, inp in enumerate(inputs)}

    def hash_of(var: Variable) -> int:
        if var not in hashes:
            # Without owner: all others were met in the order of computation.
            try:
                hashes[var] = hash(var.signature() if isinstance(var, gof.Constant) else var)
            except TypeError:
                # The value of a constant need not be hashable.
                hashes[var] = hash(var.type)
        return hashes[var]

    for node in gof.graph.io_toposort(inputs, outputs):
        computed = hash((node.op, tuple([hash_of(inp) for inp in node.inputs])))
        for i, out in enumerate(node.outputs):
            hashes.setdefault(out, hash((computed, i)))
    return [hash_of(out) for out in outputs]
