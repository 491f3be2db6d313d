"""Operations on the graphs of Composites: depth, inlining and merging; lazy attributes."""

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
    """Mixin of Composite that makes its graph and Python implementation at first access.

    Most Composites are fused into larger Composites, and are never compiled or called.
    """

    def __getattr__(self, name: str) -> Any:
        make = {"fgraph": "init_fgraph", "_impls": "init_py_impls"}.get(name)
        if make is None:
            raise AttributeError(name)
        getattr(self, make)()
        return vars(self)[name]


def compute_depth(inputs: Variables, outputs: Variables) -> int:
    """Return the depth of a graph: the largest sum of op.depth over a chain of ops.

    Raises:
        ValueError: an op is not a ScalarOp.
    """
    from theano.scalar.basic import ScalarOp  # noqa: PLC0415 (it imports this module)

    depths: dict[Variable, int] = {}
    for node in io_toposort(inputs, outputs):
        if not isinstance(node.op, ScalarOp):
            raise ValueError(
                "The fgraph to Composite must be exclusively composed of ScalarOp instances."
            )
        input_depth = max((depths.get(variable, 0) for variable in node.inputs), default=0)
        depths.update(dict.fromkeys(node.outputs, input_depth + node.op.depth))
    return max(depths.get(output, 0) for output in outputs)


def apply_inner_ops(op: Any, inputs: Sequence[Variable]) -> Variables:
    """Apply the inner ops of a Composite to inputs; return the outputs."""
    copies = clone_get_equiv([], op.outputs, memo=dict(zip(op.inputs, inputs, strict=True)))
    return [copies[output] for output in op.outputs]


def inline_node(inputs: Variables, node: Apply) -> tuple[Variables, Variables]:
    """Copy a graph whose outputs a Composite computes; replace the Composite by its inner ops.

    Args:
        inputs: the inputs of the graph.
        node: the node of the Composite.

    Returns:
        The inputs and the outputs of the copy.
    """
    copies = clone_get_equiv(inputs, node.inputs)
    outputs = apply_inner_ops(node.op, [copies[variable] for variable in node.inputs])
    return [copies[variable] for variable in inputs], outputs


def merge_equal_nodes(inputs: Variables, outputs: Variables) -> FunctionGraph:
    """Copy a graph; merge nodes with equal ops and inputs, and equal constants."""
    copies: dict[Variable, Variable] = {variable: variable.clone() for variable in inputs}
    # Maps (type, bytes) to a constant in a list, and (op, *inputs) to the outputs of a node.
    merged: dict[Any, Variables] = {}

    def copy(variable: Variable) -> Variable:
        if variable not in copies and isinstance(variable, Constant):
            # Compare bytes, not values, because 0 equals -0.
            key = variable.type, np.asarray(variable.data).tobytes()
            copies[variable] = merged.setdefault(key, [variable.clone()])[0]
        # A variable without a copy is neither computed nor a constant: FunctionGraph rejects it.
        return copies.get(variable, variable)

    for node in io_toposort(inputs, outputs):
        new_inputs = [copy(variable) for variable in node.inputs]
        key = node.op, *new_inputs
        if key not in merged:
            merged[key] = node.clone_with_new_inputs(new_inputs).outputs
        copies.update(zip(node.outputs, merged[key], strict=True))
    return FunctionGraph(
        [copies[variable] for variable in inputs],
        [copy(variable) for variable in outputs],
        clone=False,
    )
