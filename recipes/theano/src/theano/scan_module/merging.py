"""Conditions under which Scans can be merged into one Scan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from theano import gof
from theano.scan_module.scan_utils import equal_computations

if TYPE_CHECKING:
    from theano.gof.graph import Apply, Variable


def have_equal_conditions(node: Apply, other: Apply) -> bool:
    """Return whether the conditions (scan's `until`) of two Scans are equal.

    Then the Scans always stop after the same step. Conditions are equal if they are equal
    computations of the same outer variables.
    """
    if len(node.op.inputs) != len(other.op.inputs):
        return False
    outputs, positions, outer = find_condition_graph(node)
    other_outputs, other_positions, other_outer = find_condition_graph(other)
    return (
        (positions, outer) == (other_positions, other_outer)
        and len(outputs) == len(other_outputs)
        and equal_computations(outputs, other_outputs, node.op.inputs, other.op.inputs)
    )


def find_condition_graph(node: Apply) -> tuple[list[Variable], list[int], list[Variable]]:
    """Find the variables on which a Scan's condition depends, directly or through states.

    Returns:
        The inner outputs that determine the condition, with the condition first; the positions of
        the inner inputs that these outputs read; and the corresponding outer inputs.
    """
    outer = node.op.var_mappings["outer_inp_from_inner_inp"]
    states = node.op.var_mappings["inner_out_from_inner_inp"]
    outputs, positions = [node.op.outputs[-1]], []
    for output in outputs:
        read_inputs = set(gof.graph.inputs([output]))
        for position, inner in enumerate(node.op.inputs):
            if inner in read_inputs and position not in positions:
                positions.append(position)
                outputs += [
                    node.op.outputs[state]
                    for state in states[position]
                    if node.op.outputs[state] not in outputs
                ]
    return outputs, positions, [node.inputs[outer[position]] for position in positions]


def are_dependent(
    first: Apply, second: Apply, before: dict[Apply, set[Apply]] | None = None
) -> bool:
    """Return whether one of two Scans depends on the other, directly or indirectly.

    Args:
        first: the node of a Scan.
        second: the node of another Scan.
        before: the result of find_scans_before. If it is None, the graph is searched.
    """
    if before is None:
        return any(gof.graph.is_in_ancestors(*pair) for pair in ((first, second), (second, first)))
    return second in before[first] or first in before[second]


def find_scans_before(nodes: Sequence[Apply], scans: Sequence[Apply]) -> dict[Apply, set[Apply]]:
    """Map each Scan to the Scans on which it depends, directly or indirectly.

    Args:
        nodes: the nodes of a graph in topological order.
        scans: the nodes of the graph's Scans.
    """
    numbers = {scan: number for number, scan in enumerate(scans)}
    # Maps a node to a bit set of the Scans on which its outputs depend, including the node itself.
    bits: dict[Apply, int] = {}
    before = {}
    for node in nodes:
        reached = 0
        for variable in node.inputs:
            if variable.owner is not None:
                reached |= bits[variable.owner]
        if node in numbers:
            before[node] = {scan for scan, number in numbers.items() if reached >> number & 1}
            reached |= 1 << numbers[node]
        bits[node] = reached
    return before


def select_independent(nodes: Iterable[Apply]) -> list[Apply]:
    """Select nodes in order; omit a node if it and a selected node are dependent."""
    selected_nodes: list[Apply] = []
    for node in nodes:
        if not any(are_dependent(node, selected) for selected in selected_nodes):
            selected_nodes.append(node)
    return selected_nodes
