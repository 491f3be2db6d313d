"""Canonical forms of slices whose step is positive or -1."""

from __future__ import annotations

import sys
from typing import Any

from theano.tensor import basic
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
    switch = Order().make_switch

    def clip(end: Any, last: Any) -> Any:
        end = switch(basic.lt(end, 0), end + length, end)
        # For a step of -1, the slice begins or stops at the next index. Compare before the
        # addition, because the greatest integer has no next index.
        end = switch(basic.lt(end, last), end + int(step < 0), last)
        return switch(basic.lt(end, 0), 0, end)

    if step > 0 and stop is not None and stop == sys.maxsize:
        stop = None
    first, last = (start, stop) if step > 0 else (stop, start)
    last = length if last is None else clip(last, length)
    first = 0 if first is None else clip(first, last)
    return slice(first, last, abs(step)), 1 if step > 0 else -1
