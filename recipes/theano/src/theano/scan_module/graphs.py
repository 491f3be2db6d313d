"""Operations on the graphs of Scans: copy, merge, hash and compare; copies of inferred shapes."""

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
        copies: maps a variable to its copy or replacement. New copies are added.
        strict: as for Apply.clone_with_new_inputs.
        share_inputs: if True, a variable without owner is its own copy. A constant that belongs to
            a FunctionGraph is always copied, because it cannot belong to two FunctionGraphs.

    Returns:
        `copies`.
    """
    # Use a loop instead of recursion, because scans are cloned often, and graphs are deep.
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
    """Merge equal nodes and equal constants of a graph; return the new outputs.

    Nodes are equal if they have equal ops and the same inputs. Constants are equal if their
    signatures are equal. MergeOptimizer does the same in a FunctionGraph.
    """
    merged: dict[Variable, Variable] = {}
    # Maps the signature of a constant to the constant, and (op, inputs) to a node.
    unique: dict[Any, Any] = {}

    def merge(var: Variable) -> Variable:
        if var in merged:
            return merged[var]
        if isinstance(var, gof.Constant):
            return unique.setdefault(var.merge_signature(), var)
        return var

    for node in gof.graph.io_toposort(inputs, outputs):
        new_inputs = [merge(inp) for inp in node.inputs]
        key = (node.op, tuple(new_inputs))
        if key not in unique:
            unchanged = new_inputs == node.inputs
            unique[key] = node if unchanged else node.clone_with_new_inputs(new_inputs)
        merged_node: Apply = unique[key]
        merged.update(zip(node.outputs, merged_node.outputs, strict=True))
    return [merge(out) for out in outputs]


def replace_computations(
    outputs: Sequence[Variable], computed: Sequence[Variable], variables: Iterable[Variable]
) -> list[Variable]:
    """Replace computations in graphs by variables; return the new outputs.

    Args:
        outputs: the outputs of the graphs.
        computed: the outputs of the computations to replace. A variable without owner is not
            replaced.
        variables: the replacements, one for each computation.
    """
    # Merge first, so that equal computations in the graphs are the same variables.
    all_outputs = [*outputs, *computed]
    merged = merge_graph(gof.graph.inputs(all_outputs), all_outputs)
    merged_outputs, computations = merged[: len(outputs)], merged[len(outputs) :]
    copies: dict[Variable, Variable] = {}
    for computation, variable in zip(computations, variables, strict=True):
        if computation.owner is not None:
            copies.setdefault(computation, variable)
    copy_graph(merged_outputs, copies, strict=True, share_inputs=True)
    return [copies[output] for output in merged_outputs]


def copy_scan(
    node: Apply,
    copies: dict[Variable, Variable],
    sequences: Mapping[Variable, Variable],
    others: Mapping[Variable, Variable],
    stored: Sequence[Variable] = (),
) -> list[Variable]:
    """Copy a Scan with additional inputs and outputs and replaced variables; return its outputs.

    Args:
        node: the node of the Scan.
        copies: maps an inner input or a replaced inner variable to its copy.
        sequences: maps a new inner input that changes from step to step to its outer sequence.
        others: maps a new inner input that is the same in all steps to its outer variable.
        stored: inner variables that become additional outputs, before the shared outputs.
    """
    scan: Any = node.op
    inner_outputs = list(scan.outputs)
    first_shared = scan.n_mit_mot_outs + scan.n_mit_sot + scan.n_sit_sot + scan.n_nit_sot
    inner_outputs[first_shared:first_shared] = stored
    copy_graph(inner_outputs, copies, strict=True, share_inputs=True)
    new_scan = type(scan)(
        [*sequences, *(copies[x] for x in scan.inputs), *others],
        [copies[x] for x in inner_outputs],
        {
            **scan.info,
            "n_seqs": scan.n_seqs + len(sequences),
            "n_nit_sot": scan.n_nit_sot + len(stored),
        },
    )
    steps, *inputs = node.inputs
    # The outer input of an output without initial state is the number of values to store.
    first_other = len(inputs) - len(scan.outer_non_seqs(node.inputs))
    inputs[first_other:first_other] = [steps] * len(stored)
    outputs: list[Variable] = new_scan(
        steps, *sequences.values(), *inputs, *others.values(), return_list=True
    )
    return outputs


def hash_computations(outputs: Iterable[Variable], inputs: Iterable[Variable] = ()) -> list[int]:
    """Hash graphs: graphs that scan_utils.equal_computations considers equal have equal hashes.

    Args:
        outputs: the outputs of the graphs.
        inputs: the inputs of the graphs. The hash of an input is the hash of its position.

    Returns:
        One hash for each output.
    """
    hashes: dict[Variable, int] = {inp: hash((0, i)) for i, inp in enumerate(inputs)}

    def hash_variable(var: Variable) -> int:
        if var not in hashes:
            # `var` has no owner: the loop below adds the hashes of nodes' outputs before they are
            # looked up.
            try:
                hashes[var] = hash(var.signature() if isinstance(var, gof.Constant) else var)
            except TypeError:
                # The value of this constant has no hash.
                hashes[var] = hash(var.type)
        return hashes[var]

    for node in gof.graph.io_toposort(inputs, outputs):
        computed = hash((node.op, tuple([hash_variable(inp) for inp in node.inputs])))
        for i, out in enumerate(node.outputs):
            hashes.setdefault(out, hash((computed, i)))
    return [hash_variable(out) for out in outputs]


class Computations:
    """Comparison of variables by the graphs that compute them.

    Most graphs differ in nodes near the variables. Whole graphs are hashed only if these nodes are
    equal.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = variables

    @functools.cached_property
    def hashes(self) -> dict[Variable, int]:
        """The hashes of the variables' graphs, by variable."""
        return dict(zip(self.variables, hash_computations(self.variables), strict=True))

    def may_be_equal(self, x: Variable, y: Variable) -> bool:
        """Return whether two variables may be equal.

        If False, equal_computations returns False too.
        """
        return not differ_nearby(x, y) and self.hashes[x] == self.hashes[y]


def differ_nearby(x: Variable, y: Variable, depth: int = 3) -> bool:
    """Return whether the graphs of two variables differ in the last `depth` levels of nodes."""
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
                differ_nearby(x_input, y_input, depth - 1)
                for x_input, y_input in zip(x.owner.inputs, y.owner.inputs, strict=True)
            )
        )
    )


def copy_shapes(shape_feature: Any, outs: Sequence[Variable], new_outs: Sequence[Variable]) -> None:
    """Copy the inferred shapes of a Scan's outputs to a new Scan, because inference is slow.

    Args:
        shape_feature: the ShapeFeature of the graph.
        outs: the outputs of the old Scan.
        new_outs: the outputs of the new Scan.
    """
    for out, new_out in zip(outs, new_outs, strict=True):
        shape = shape_feature.shape_of[out]
        if shape is not None:
            # A shape that depends on the old Scan would keep the old Scan in the graph.
            shape = [
                shape_feature.shape_ir(i, new_out)
                if any(variable in outs for variable in gof.graph.ancestors([dimension]))
                else dimension
                for i, dimension in enumerate(shape)
            ]
        shape_feature.set_shape(new_out, shape)
