"""What optimizers make of what is known of the order of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from theano import gof
from theano.tensor import basic as T
from theano.tensor import order

if TYPE_CHECKING:
    from theano.gof import FunctionGraph, Variable

# The index of a dimension: a slice of integers, or an integer, which are Variables or not.
Index = Any


def merge_neighbours(
    sl1: slice, reverse1: int, sl2: slice, reverse2: int, len1: Variable
) -> tuple[Variable, Variable, Variable]:
    """Return start, stop and step of a slice of a slice of neighbours.

    Both are canonical, and their directions known: 0 <= start <= stop <= len, so that nothing has
    to be clipped, but for a stop before the first element.

    Args:
        sl1: what the second is taken from; its step is 1.
        reverse1: its direction, 1 or -1.
        sl2: what is taken from the first.
        reverse2: its direction, 1 or -1.
        len1: the length of what the first is taken from.
    """
    if reverse1 > 0:
        start, stop = sl1.start + sl2.start, sl1.start + sl2.stop
    else:
        start, stop = sl1.stop - sl2.stop, sl1.stop - sl2.start
    step = sl2.step
    if reverse1 * reverse2 < 0:
        start, stop, step = stop - 1, start - 1, -step
        stop = order.Order().switch(T.and_(T.lt(stop, 0), T.gt(start, stop)), -len1 - 1, stop)
    else:
        start, stop = order.Order().slice(start, stop)
    integers = order.Order()
    return integers.simplest(start), integers.simplest(stop), step


def merge_slices(
    fgraph: FunctionGraph,
    x: Variable,
    slices1: Sequence[Index],
    u: Variable,
    slices2: Sequence[Index],
) -> list[Index]:
    """Return the slices of x that give what slices2 are of u, which slices1 are of x."""
    from theano.tensor.opt import merge_two_slices  # noqa: PLC0415 (it imports this)

    try:
        # No new shapes come into the graph.
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
            merged_slices.append(
                merge_two_slices(slice1, xshape[pos_1], slices2[pos_2], ushape[pos_2])
            )
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
    """Replace comparisons of integers, and what is chosen by them, that are known."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Have replacements validated."""
        fgraph.attach_feature(gof.toolbox.ReplaceValidate())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Replace what is known in a graph."""
        integers = order.Order()
        for node in fgraph.toposort():
            out = node.outputs[0]
            known = integers.known(out)
            if known is not None:
                fgraph.replace_validate(out, T.cast(known, out.dtype), reason="KnownOrder")
