"""Graphs of Composites: depth, inlining, and merging of equal nodes; attributes made at access."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from theano.gof import FunctionGraph
from theano.gof.graph import Constant, clone_get_equiv, io_toposort

if TYPE_CHECKING:
    from theano.gof import Apply, Variable

Variables = list["Variable"]


class Lazy:
    """Make a Composite's graph and Python implementation at first access.

    Most Composites are fused into others and never compiled or called.
    """

    def __getattr__(self, name: str) -> Any:
        make = {"fgraph": "init_fgraph", "_impls": "init_py_impls"}.get(name)
        if make is None:
            raise AttributeError(name)
        getattr(self, make)()
        return vars(self)[name]


def depth(inputs: Variables, outputs: Variables) -> int:
    """Return the length of the longest chain of ops in a graph; an op counts with its own depth.

    Raises:
        ValueError: an op is not a ScalarOp.
    """
    from theano.scalar.basic import ScalarOp  # noqa: PLC0415 (it imports this)

    depths: dict[Variable, int] = {}
    for node in io_toposort(inputs, outputs):
        if not isinstance(node.op, ScalarOp):
            raise ValueError(
                "The fgraph to Composite must be exclusively composed of ScalarOp instances."
            )
        before = max((depths.get(variable, 0) for variable in node.inputs), default=0)
        depths.update(dict.fromkeys(node.outputs, before + node.op.depth))
    return max(depths.get(output, 0) for output in outputs)


def apply_inner_ops(op: Any, inputs: Sequence[Variable]) -> Variables:
    """Apply the inner ops of a Composite to inputs; return the outputs."""
    copies = clone_get_equiv([], op.outputs, memo=dict(zip(op.inputs, inputs, strict=True)))
    return [copies[output] for output in op.outputs]


def inline_node(inputs: Variables, node: Apply) -> tuple[Variables, Variables]:
    """Copy a graph that ends in a Composite's node, with the node replaced by its inner ops.

    Args:
        inputs: the inputs of the graph.
        node: the Composite's node.

    Returns:
        The copies of the inputs, and the outputs.
    """
    copies = clone_get_equiv(inputs, node.inputs)
    outputs = apply_inner_ops(node.op, [copies[variable] for variable in node.inputs])
    return [copies[variable] for variable in inputs], outputs


def merge_equal_nodes(inputs: Variables, outputs: Variables) -> FunctionGraph:
    """Copy a graph, with equal nodes and equal constants merged."""
    copies: dict[Variable, Variable] = {variable: variable.clone() for variable in inputs}
    # Constants by type and bytes; the outputs of nodes by op and inputs.
    seen: dict[Any, Variables] = {}

    def copy(variable: Variable) -> Variable:
        if variable not in copies and isinstance(variable, Constant):
            # Compare bytes, not values, because 0 equals -0.
            key = variable.type, np.asarray(variable.data).tobytes()
            copies[variable] = seen.setdefault(key, [variable.clone()])[0]
        # FunctionGraph rejects a variable that is neither computed nor a constant.
        return copies.get(variable, variable)

    for node in io_toposort(inputs, outputs):
        new_inputs = [copy(variable) for variable in node.inputs]
        key = node.op, *new_inputs
        if key not in seen:
            seen[key] = node.clone_with_new_inputs(new_inputs).outputs
        copies.update(zip(node.outputs, seen[key], strict=True))
    return FunctionGraph(
        [copies[variable] for variable in inputs],
        [copy(variable) for variable in outputs],
        clone=False,
    )
