"""Match the nodes of a recurrence and of its gradient, and store values of the recurrence.

The steps of a gradient contain copies of the recurrence's nodes. A copy computes the same value if
its inputs are the recurrence's inputs, states and outputs in reverse order, as Scan.L_op makes
them. If the recurrence stores the value for all steps, the gradient can read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from theano import gof
from theano.ifelse import IfElse
from theano.scan_module import scan_op
from theano.scan_module.buffers import reverse_buffer
from theano.scan_module.graphs import copy_scan
from theano.scan_module.scan_utils import safe_new
from theano.tensor.subtensor import Subtensor

if TYPE_CHECKING:
    from theano.gof import Apply, Variable
    from theano.gof.fg import FunctionGraph


def find_recurrence(gradient: Apply) -> Apply | None:
    """Return the Scan whose gradient a node computes, or None if there is no such Scan.

    Scans with `until` and gradients of gradients are not found.
    """
    for buffer in list_reversed_buffers(gradient):
        node = buffer.owner
        if node and isinstance(node.op, scan_op.Scan):
            states = [*node.op.outer_mitsot_outs(node), *node.op.outer_sitsot_outs(node)]
            if buffer in states and not (node.op.as_while or node.op.n_mit_mot):
                return node
    return None


def list_reversed_buffers(gradient: Apply) -> Iterator[Variable]:
    """List the variables whose reversed slices a gradient reads, from the last to the first."""
    for sequence in reversed(gradient.op.outer_seqs(gradient.inputs)):
        if sequence.owner and isinstance(sequence.owner.op, Subtensor):
            yield sequence.owner.inputs[0]


def match_values(gradient: Apply, recurrence: Apply) -> dict[Variable, Variable]:
    """Map the inner variables of a gradient to the equal inner variables of its recurrence.

    Return no variables if the recurrence has an IfElse: storing a value would compute it in all
    steps, also if no step needs it.
    """
    scan, op = recurrence.op, gradient.op
    # Of equal nodes of the recurrence, only the first one represents its outputs in keys.
    nodes: dict[Any, Any] = {}
    first: dict[Variable, Variable] = {}
    for node in gof.graph.io_toposort(scan.inputs, scan.outputs):
        if isinstance(node.op, IfElse):
            return {}
        equal_node = nodes.setdefault(make_node_key(node, first, strict=False), node)
        first.update(zip(node.outputs, equal_node.outputs, strict=True))
    matched = {x: first.get(y, y) for x, y in match_inputs(gradient, recurrence).items()}
    for node in gof.graph.io_toposort(op.inputs, op.outputs):
        key = make_node_key(node, matched, strict=True)
        if key in nodes:
            matched.update(zip(node.outputs, nodes[key].outputs, strict=True))
    return matched


def match_inputs(gradient: Apply, recurrence: Apply) -> dict[Variable, Variable]:
    """Map the inner inputs of a gradient to the equal inner variables of its recurrence."""
    inner_of: dict[Any, Variable] = {}
    for inner, outer in [*list_reversed_values(recurrence), *list_other_inputs(recurrence)]:
        inner_of.setdefault(make_key(outer), inner)
    op = gradient.op
    sequences = zip(op.inner_seqs(op.inputs), op.outer_seqs(gradient.inputs), strict=True)
    return {
        inner: inner_of[key]
        for inner, outer in [*sequences, *list_other_inputs(gradient)]
        if (key := make_key(outer)) in inner_of
    }


def list_other_inputs(node: Apply) -> Iterable[tuple[Variable, Variable]]:
    """List the inner and outer inputs of a Scan that are the same in all steps, in pairs."""
    scan = node.op
    return zip(scan.inner_non_seqs(scan.inputs), scan.outer_non_seqs(node.inputs), strict=True)


def list_reversed_values(recurrence: Apply) -> Iterator[tuple[Variable, Any]]:
    """List the sequences, states and outputs of a recurrence's steps.

    Yields:
        The inner variable, and its values in reverse order, sliced as in Scan.L_op.
    """
    scan, inputs, outs = recurrence.op, recurrence.inputs, recurrence.outputs
    for inner, sequence in zip(scan.inner_seqs(scan.inputs), scan.outer_seqs(inputs), strict=True):
        yield inner, sequence[::-1]
    buffers, states = scan.outer_mitsot_outs(outs), iter(scan.inner_mitsot(scan.inputs))
    results = scan.inner_mitsot_outs(scan.outputs)
    for result, taps, buffer in zip(results, scan.mitsot_taps(), buffers, strict=True):
        for tap in taps:
            yield next(states), reverse_buffer(buffer, tap - min(taps), -tap)
        yield result, reverse_buffer(buffer, -min(taps), 0)
    buffers, states = scan.outer_sitsot_outs(outs), scan.inner_sitsot(scan.inputs)
    results = scan.inner_sitsot_outs(scan.outputs)
    for state, result, buffer in zip(states, results, buffers, strict=True):
        yield state, reverse_buffer(buffer, 0, 1)
        yield result, reverse_buffer(buffer, 1, 0)
    buffers, results = scan.outer_nitsot_outs(outs), scan.inner_nitsot_outs(scan.outputs)
    for result, buffer in zip(results, buffers, strict=True):
        yield result, buffer[::-1]


def make_key(sequence: Variable) -> Any:
    """Return a key that is equal for equal slices of the same variable."""
    node = sequence.owner
    if node is None or not isinstance(node.op, Subtensor):
        return sequence
    sliced, *bounds = node.inputs
    keys = [x.signature() if isinstance(x, gof.Constant) else x for x in bounds]
    return (node.op, sliced, *keys)


def make_node_key(node: Apply, values: dict[Any, Any], strict: bool) -> Any:
    """Return a key of a node's op and inputs.

    Args:
        node: the node.
        values: maps an input to the variable that represents it in keys.
        strict: whether inputs that are not in `values` make the key None.
    """
    keys = []
    for x in node.inputs:
        if isinstance(x, gof.Constant):
            keys.append(x.merge_signature())
        elif strict and x not in values:
            return None
        else:
            keys.append(values.get(x, x))
    return (node.op, tuple(keys))


def store_values(fgraph: FunctionGraph, node: Apply, values: Sequence[Variable]) -> list[Any]:
    """Replace a Scan by a Scan that also stores inner variables.

    Args:
        fgraph: the graph of the Scan.
        node: the node of the Scan.
        values: the inner variables to store.

    Returns:
        The outer variable of each stored variable: its values in all steps.
    """
    outs = copy_scan(node, {x: safe_new(x) for x in node.op.inputs}, {}, {}, values)
    first = len(node.outputs) - node.op.n_shared_outs
    last = first + len(values)
    fgraph.replace_all_validate_remove(
        list(zip(node.outputs, outs[:first] + outs[last:], strict=True)),
        remove=[node],
        reason="scanOp_pushout_gradients",
    )
    return outs[first:last]
