"""Broadcast of a replacement to the shape of the variable that it replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import theano

if TYPE_CHECKING:
    from theano.gof.fg import FunctionGraph
    from theano.gof.graph import Variable


def as_wide(fgraph: FunctionGraph, old: Variable, new: Variable) -> Variable | None:
    """Return a replacement, broadcast to the shape of the variable that it replaces.

    An optimization that removes a constant operand also removes the operand's shape. For example,
    it replaces switch(ones(3), a, b) with a, even if a has one element.

    Args:
        fgraph: the graph that contains the variable.
        old: the variable to replace.
        new: the replacement. It has the variable's type, except that more dimensions may be
            broadcastable.

    Returns:
        The broadcast replacement, or None if the graph has no ShapeFeature to infer the shape.
    """
    tensor: Any = theano.tensor
    if new.type == old.type or not isinstance(new.type, tensor.TensorType):
        return new
    pairs = zip(new.type.broadcastable, getattr(old.type, "broadcastable", ()), strict=False)
    # The dimensions that are broadcastable in the replacement but not in the variable.
    narrow = [
        dim
        for dim, (new_broadcastable, old_broadcastable) in enumerate(pairs)
        if new_broadcastable and not old_broadcastable
    ]
    if not narrow:
        return new
    if not hasattr(fgraph, "shape_feature"):
        return None
    shape = [fgraph.shape_feature.get_shape(old, dim) for dim in range(old.type.ndim)]
    if all(tensor.extract_constant(shape[dim]) == 1 for dim in narrow):
        return new
    return tensor.alloc.make_node(new, *shape).outputs[0]
