"""Broadcast of a replacement to the shape of the variable that it replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import theano

if TYPE_CHECKING:
    from theano.gof.fg import FunctionGraph
    from theano.gof.graph import Variable


def as_wide(fgraph: FunctionGraph, old: Variable, new: Variable) -> Variable | None:
    """Return a replacement, broadcast to the shape of the variable that it replaces.

    An optimization that drops a constant operand drops the operand's shape too.

    Args:
        fgraph: the graph of the variable.
        old: the variable to replace.
        new: the replacement: the same type, except that more dimensions may be broadcastable.

    Returns:
        The replacement, or None if the shape of the variable is unknown.
    """
    tensor: Any = theano.tensor
    if new.type == old.type or not isinstance(new.type, tensor.TensorType):
        return new
    pairs = zip(new.type.broadcastable, getattr(old.type, "broadcastable", ()), strict=False)
    narrow = [dim for dim, (new_one, old_one) in enumerate(pairs) if new_one and not old_one]
    if not narrow:
        return new
    if not hasattr(fgraph, "shape_feature"):
        return None
    shape = [fgraph.shape_feature.get_shape(old, dim) for dim in range(old.type.ndim)]
    if all(tensor.extract_constant(shape[dim]) == 1 for dim in narrow):
        return new
    return tensor.alloc.make_node(new, *shape).outputs[0]
