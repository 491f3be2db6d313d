"""The graphs of Composites."""

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
    """What a Composite needs to be compiled or called is made where it is asked for.

    Most Composites become part of others.
    """

    def __getattr__(self, name: str) -> Any:
        make = {"fgraph": "init_fgraph", "_impls": "init_py_impls"}.get(name)
        if make is None:
            raise AttributeError(name)
        getattr(self, make)()
        return vars(self)[name]


def depth(inputs: Variables, outputs: Variables) -> int:
    """Return how many ops a graph has one after another, each with as many as its depth is.

    Raises:
        ValueError: there are others than scalar ops.
    """
    from theano.scalar.basic import ScalarOp  # noqa: PLC0415 (it imports this)

    depths: dict[Variable, int] = {}
    for node in io_toposort(inputs, outputs):
        if not isinstance(node.op, ScalarOp):
            raise ValueError(
                "The fgraph to Composite must be exclusively composed of ScalarOp instances."
            )
        before = max((depths.get(each, 0) for each in node.inputs), default=0)
        depths.update(dict.fromkeys(node.outputs, before + node.op.depth))
    return max(depths.get(each, 0) for each in outputs)


def applied(op: Any, inputs: Sequence[Variable]) -> Variables:
    """Return what a Composite computes of inputs, by the ops in it."""
    copies = clone_get_equiv([], op.outputs, memo=dict(zip(op.inputs, inputs, strict=True)))
    return [copies[each] for each in op.outputs]


def flattened(inputs: Variables, node: Apply) -> tuple[Variables, Variables]:
    """Return a copy of inputs, and of what a Composite's node computes of them, without that."""
    copies = clone_get_equiv(inputs, node.inputs)
    outputs = applied(node.op, [copies[each] for each in node.inputs])
    return [copies[each] for each in inputs], outputs


def merged(inputs: Variables, outputs: Variables) -> FunctionGraph:
    """Return the graph of a copy that computes nothing twice."""
    copies: dict[Variable, Variable] = {each: each.clone() for each in inputs}
    known: dict[Any, Variables] = {}

    def copy(variable: Variable) -> Variable:
        if variable not in copies and isinstance(variable, Constant):
            # Not by the value: 0 and -0 are equal.
            same = variable.type, np.asarray(variable.data).tobytes()
            copies[variable] = known.setdefault(same, [variable.clone()])[0]
        # The graph refuses what is neither computed nor a constant.
        return copies.get(variable, variable)

    for node in io_toposort(inputs, outputs):
        read = [copy(each) for each in node.inputs]
        same = node.op, *read
        if same not in known:
            known[same] = node.clone_with_new_inputs(read).outputs
        copies.update(zip(node.outputs, known[same], strict=True))
    return FunctionGraph(
        [copies[each] for each in inputs], [copy(each) for each in outputs], clone=False
    )
