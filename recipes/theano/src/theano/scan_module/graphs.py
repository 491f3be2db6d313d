"""Copies, merging, hashes and shapes of a Scan's graphs."""

from __future__ import annotations

import functools
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


class Computations:
    """Comparison of variables by the graphs that compute them.

    Most pairs differ near to the variables. Only if they do not, the graphs are hashed as a whole.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = variables

    @functools.cached_property
    def hashes(self) -> dict[Variable, int]:
        """The hash of each variable's graph."""
        return dict(zip(self.variables, hash_computations(self.variables), strict=True))

    def may_be_equal(self, x: Variable, y: Variable) -> bool:
        """Return False only if two of the variables are not equal for equal_computations."""
        return not differ_nearby(x, y) and self.hashes[x] == self.hashes[y]


def differ_nearby(x: Variable, y: Variable, depth: int = 3) -> bool:
    """Return whether the graphs of two variables differ in the nodes up to a depth."""
    if x is y:
        return False
    if x.owner is None or y.owner is None:
        return not (isinstance(x, gof.Constant) and isinstance(y, gof.Constant) and x.equals(y))
    return (
        x.index != y.index
        or len(x.owner.inputs) != len(y.owner.inputs)
        or x.owner.op != y.owner.op
        or (
            depth > 1
            and any(
                differ_nearby(one, other, depth - 1)
                for one, other in zip(x.owner.inputs, y.owner.inputs, strict=True)
            )
        )
    )


def keep_shapes(shape_feature: Any, outs: Sequence[Variable], new_outs: Sequence[Variable]) -> None:
    """Copy the inferred shapes of a Scan's outputs to a new Scan's, because inference is slow."""
    for out, new_out in zip(outs, new_outs, strict=True):
        shape = shape_feature.shape_of[out]
        if shape is not None:
            # A shape that depends on the old Scan would keep it in the graph.
            shape = [
                shape_feature.shape_ir(i, new_out)
                if any(variable in outs for variable in gof.graph.ancestors([dimension]))
                else dimension
                for i, dimension in enumerate(shape)
            ]
        shape_feature.set_shape(new_out, shape)
