"""Which Scans can become one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from theano import gof
from theano.scan_module.scan_utils import equal_computations

if TYPE_CHECKING:
    from theano.gof.graph import Apply, Variable


def end_together(node: Apply, other: Apply) -> bool:
    """Whether the conditions of two Scans are the same computation of the same outer variables."""
    if len(node.op.inputs) != len(other.op.inputs):
        return False
    outputs, places, outer = read_by_condition(node)
    others, other_places, other_outer = read_by_condition(other)
    return (
        (places, outer) == (other_places, other_outer)
        and len(outputs) == len(others)
        and equal_computations(outputs, others, node.op.inputs, other.op.inputs)
    )


def read_by_condition(node: Apply) -> tuple[list[Variable], list[int], list[Variable]]:
    """What a Scan's condition is computed of, by way of states too.

    Returns:
        The inner outputs that decide it, the condition first; the places of the inner inputs that
        these read; and the outer inputs that belong to them.
    """
    outer = node.op.var_mappings["outer_inp_from_inner_inp"]
    states = node.op.var_mappings["inner_out_from_inner_inp"]
    outputs, places = [node.op.outputs[-1]], []
    for output in outputs:
        reached = set(gof.graph.inputs([output]))
        for place, inner in enumerate(node.op.inputs):
            if inner in reached and place not in places:
                places.append(place)
                outputs += [
                    node.op.outputs[state]
                    for state in states[place]
                    if node.op.outputs[state] not in outputs
                ]
    return outputs, places, [node.inputs[outer[place]] for place in places]


def independent(nodes: Iterable[Apply]) -> list[Apply]:
    """Those that need none of the ones before them, and that none of these needs."""
    found: list[Apply] = []
    for node in nodes:
        if not any(
            gof.graph.is_in_ancestors(node, each) or gof.graph.is_in_ancestors(each, node)
            for each in found
        ):
            found.append(node)
    return found
