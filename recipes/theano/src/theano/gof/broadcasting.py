"""Broadcasting in rewrites: by an Alloc, and to the shape of the replaced variable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import theano

if TYPE_CHECKING:
    from theano.gof.fg import FunctionGraph
    from theano.gof.graph import Apply, Variable


def may_broadcast(node: Apply) -> bool:
    """Return whether an Alloc may broadcast its value in a call.

    Alloc repeats the value along a dimension if the value has one element there. That is possible
    in a dimension that is not declared broadcastable, unless the value provably has the length of
    the result.
    """
    value, output = node.inputs[0], node.outputs[0]
    feature = getattr(getattr(node, "fgraph", None), "shape_feature", None)
    added = output.ndim - value.ndim
    return any(
        not broadcastable
        and (feature is None or not feature.same_shape(value, output, dim, dim + added))
        for dim, broadcastable in enumerate(value.broadcastable)
    )


def broadcast_replacement(fgraph: FunctionGraph, old: Variable, new: Variable) -> Variable | None:
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
    narrow_dims = [
        dim
        for dim, (new_broadcastable, old_broadcastable) in enumerate(pairs)
        if new_broadcastable and not old_broadcastable
    ]
    # A Reshape does not broadcast: its result has as many elements as its input.
    if not narrow_dims or isinstance(old.owner.op, tensor.Reshape):
        return new
    if not hasattr(fgraph, "shape_feature"):
        return None
    shape = [fgraph.shape_feature.get_shape(old, dim) for dim in range(old.type.ndim)]
    if all(tensor.extract_constant(shape[dim]) == 1 for dim in narrow_dims):
        return new
    return tensor.alloc.make_node(new, *shape).outputs[0]
