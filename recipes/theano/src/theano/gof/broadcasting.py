"""What replaces a variable has its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import theano

if TYPE_CHECKING:
    from theano.gof.fg import FunctionGraph
    from theano.gof.graph import Variable


def as_wide(fgraph: FunctionGraph, old: Variable, new: Variable) -> Variable | None:
    """Return what replaces a variable, spread to that one's shape where it has one element.

    An optimization that leaves a constant out leaves its shape out, too.

    Args:
        old: the variable of the graph.
        new: of the same type, but for dimensions that are broadcastable.

    Returns:
        None, if the shape is not known.
    """
    tensor: Any = theano.tensor
    if new.type == old.type or not isinstance(new.type, tensor.TensorType):
        return new
    pairs = zip(new.type.broadcastable, getattr(old.type, "broadcastable", ()), strict=False)
    narrow = [dim for dim, (one, other) in enumerate(pairs) if one and not other]
    if not narrow:
        return new
    if not hasattr(fgraph, "shape_feature"):
        return None
    shape = [fgraph.shape_feature.get_shape(old, dim) for dim in range(old.type.ndim)]
    if all(tensor.extract_constant(shape[dim]) == 1 for dim in narrow):
        return new
    return tensor.alloc.make_node(new, *shape).outputs[0]
