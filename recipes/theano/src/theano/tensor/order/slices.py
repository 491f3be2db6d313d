"""Canonical forms of slices whose step is positive or -1."""

from __future__ import annotations

import sys
from typing import Any

from theano.tensor import basic
from theano.tensor.order.formulas import reuse_formulas
from theano.tensor.order.simplification import Order


def make_canonical_slice(start: Any, stop: Any, step: int, length: Any) -> tuple[slice, int]:
    """Return a slice with 0 <= start <= stop <= length and a positive step, and its direction.

    With a step that is positive or -1, the ends can be computed without a division. The result
    contains no comparison for an index that is provably in range.

    Args:
        start: an integer, a Variable or None.
        stop: an integer, a Variable or None. For a positive step, sys.maxsize means the end.
        step: an integer: positive or -1.
        length: the length of the dimension.

    Returns:
        The slice, and its direction: 1, or -1 if its elements must be reversed.
    """
    if step > 0 and stop is not None and stop == sys.maxsize:
        stop = None
    first, last = (start, stop) if step > 0 else (stop, start)
    return slice(*clip_ends(first, last, length, step < 0), abs(step)), 1 if step > 0 else -1


@reuse_formulas
def clip_ends(first: Any, last: Any, length: Any, is_reversed: bool) -> tuple[Any, Any]:
    """Return the ends of a slice, clipped so that 0 <= first <= last <= length.

    Args:
        first: an integer, a Variable or None. A negative integer counts from the end.
        last: another such end.
        length: the length of the dimension.
        is_reversed: whether the slice begins and stops at the indices after `first` and `last`, as
            it does with a step of -1.
    """
    switch = Order().make_switch

    def clip(end: Any, last: Any) -> Any:
        end = switch(basic.lt(end, 0), end + length, end)
        # Compare before the addition, because the greatest integer has no next index.
        end = switch(basic.lt(end, last), end + int(is_reversed), last)
        return switch(basic.lt(end, 0), 0, end)

    last = length if last is None else clip(last, length)
    return 0 if first is None else clip(first, last), last
