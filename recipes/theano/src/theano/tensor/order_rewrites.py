"""Graph rewrites by proofs about integers: merged slices and simplified comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from theano import gof
from theano.tensor import basic as T
from theano.tensor import order

if TYPE_CHECKING:
    from theano.gof import FunctionGraph, Variable

# The type of an index of one dimension: an integer, or a slice of integers. The integers may be
# Variables.
Index = Any


@order.reuse_formulas
def merge_neighbours(
    sl1: slice, reverse1: int, sl2: slice, reverse2: int, len1: Variable
) -> tuple[Variable, Variable, Any]:
    """Merge two slices, and return start, stop and step. The first slice has step 1 or -1.

    Both slices are in canonical form, with 0 <= start <= stop <= length and a positive step. In a
    merged slice with a negative step, a stop before the first element would be -1, which Python
    reads as the last element. Therefore -len1 - 1 replaces such a stop.

    Args:
        sl1: the first slice; its step in canonical form is 1.
        reverse1: the direction of the first slice, 1 or -1.
        sl2: the second slice, which slices the result of the first slice.
        reverse2: the direction of the second slice, 1 or -1.
        len1: the length of the dimension that the first slice indexes.
    """
    if reverse1 > 0:
        start, stop = sl1.start + sl2.start, sl1.start + sl2.stop
    else:
        start, stop = sl1.stop - sl2.stop, sl1.stop - sl2.start
    step = sl2.step
    if reverse1 * reverse2 < 0:
        start, stop, step = stop - 1, start - 1, -step
        stop = order.Order().make_switch(T.and_(T.lt(stop, 0), T.gt(start, stop)), -len1 - 1, stop)
    else:
        start, stop = order.Order().simplify_slice(start, stop)
    integers = order.Order()
    return integers.simplify(start), integers.simplify(stop), step


def merge_slices(
    fgraph: FunctionGraph,
    x: Variable,
    slices1: Sequence[Index],
    u: Variable,
    slices2: Sequence[Index],
) -> list[Index]:
    """Return indices such that x[indices] equals u[slices2], where u is x[slices1].

    Args:
        fgraph: the graph, with or without a ShapeFeature.
        x: the indexed variable.
        slices1: the indices of x in u.
        u: the variable x[slices1].
        slices2: the indices of u.
    """
    from theano.tensor.opt import merge_two_slices  # noqa: PLC0415 (it imports this module)

    try:
        # Prefer the variables of the ShapeFeature, because they add no new shapes to the graph.
        xshape = fgraph.shape_feature.shape_of[x]
        ushape = fgraph.shape_feature.shape_of[u]
    except AttributeError:
        # The mode has no ShapeFeature.
        xshape = x.shape
        ushape = u.shape

    merged_slices: list[Index] = []
    pos_2 = 0
    pos_1 = 0
    while pos_1 < len(slices1) and pos_2 < len(slices2):
        slice1 = slices1[pos_1]
        if type(slice1) is slice:
            slice2 = slices2[pos_2]
            if slice2 == slice(None):
                merged_slices.append(slice1)
            elif slice1 == slice(None):
                merged_slices.append(slice2)
            else:
                merged_slices.append(merge_two_slices(slice1, xshape[pos_1], slice2, ushape[pos_2]))
            pos_2 += 1
        else:
            merged_slices.append(slice1)
        pos_1 += 1

    if pos_2 < len(slices2):
        merged_slices += slices2[pos_2:]
    else:
        merged_slices += slices1[pos_1:]
    return merged_slices


class KnownOrder(gof.Optimizer):
    """Replace comparisons, switches, maxima and minima of integers whose results can be proved."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach validation of replacements."""
        fgraph.attach_feature(gof.toolbox.ReplaceValidate())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Replace each result of the graph that can be proved."""
        integers = order.Order()
        for node in fgraph.toposort():
            out = node.outputs[0]
            # Nearly all nodes compute arrays with dimensions, and find_equal returns None for them.
            if getattr(out.type, "broadcastable", ()):
                continue
            equal = integers.find_equal(out)
            if equal is not None:
                fgraph.replace_validate(out, T.cast(equal, out.dtype), reason="KnownOrder")
