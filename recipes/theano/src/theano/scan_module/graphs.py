"""Copies, merging and hashes of a Scan's graphs, in one pass over the nodes."""

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
    """Copy variables and all variables on which they depend.

    Args:
        variables: the variables to copy.
        copies: by variable: its copy or replacement. New copies are added.
        strict: as for Apply.clone_with_new_inputs.
        share_inputs: if True, a variable without owner is its own copy. A constant that belongs to
            a FunctionGraph is copied in any case, because it cannot belong to two.

    Returns:
        `copies`.
    """
    # A loop and not a recursion: scans are cloned often, and graphs are deep.
    stack = list(variables)
    while stack:
        var = stack[-1]
        if var in copies:
            stack.pop()
        elif var.owner is None:
            if not share_inputs or (isinstance(var, gof.Constant) and hasattr(var, "fgraph")):
                copies[var] = var.clone()
            else:
                copies[var] = var
        else:
            node = var.owner
            missing = [inp for inp in node.inputs if inp not in copies]
            if missing:
                stack.extend(missing)
            else:
                copied = node.clone_with_new_inputs(
                    [copies[inp] for inp in node.inputs], strict=strict
                )
                for out, copied_out in zip(node.outputs, copied.outputs, strict=True):
                    copies.setdefault(out, copied_out)
    return copies


def merge_graph(inputs: Iterable[Variable], outputs: Iterable[Variable]) -> list[Variable]:
    """Return the outputs of a graph with merged nodes.

    Nodes with equal ops and the same inputs, and constants with equal signatures, are merged, as
    MergeOptimizer does in a FunctionGraph.
    """
    merged: dict[Variable, Variable] = {}
    # Constants by signature, nodes by op and inputs.
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
    """Replace computations in graphs by variables; return the new outputs.

    Args:
        outputs: the outputs of the graphs.
        computed: the outputs of the computations to replace. An element without owner is ignored.
        variables: the replacements, one for each computation.
    """
    both = [*outputs, *computed]
    merged = merge_graph(gof.graph.inputs(both), both)
    new, old = merged[: len(outputs)], merged[len(outputs) :]
    copies: dict[Variable, Variable] = {}
    for computation, variable in zip(old, variables, strict=True):
        if computation.owner is not None:
            copies.setdefault(computation, variable)
    copy_graph(new, copies, strict=True, share_inputs=True)
    return [copies[output] for output in new]


def copy_scan(
    node: Apply,
    copies: dict[Variable, Variable],
    sequences: Mapping[Variable, Variable],
    others: Mapping[Variable, Variable],
) -> list[Variable]:
    """Copy a Scan with additional inputs and replaced inner variables; return its outputs.

    Args:
        node: the node of the Scan.
        copies: by inner input or replaced inner variable: its copy.
        sequences: by new inner input that changes from step to step: its outer sequence.
        others: by new inner input that is the same in all steps: its outer variable.
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
    """Hash graphs; graphs that are equal for equal_computations have equal hashes.

    Args:
        outputs: the outputs of the graphs.
        inputs: the inputs of the graphs; they are hashed by position.

    Returns:
        One hash for each output.
    """
    hashes: dict[Variable, int] = {inp: hash((0, i)) for i, inp in enumerate(inputs)}

    def hash_of(var: Variable) -> int:
        if var not in hashes:
            # A variable without owner: the loop below hashes all others before they are read.
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
