"""Derivatives by central differences, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# So far apart are the arguments: a power of 2, so that sums with inputs of few bits are exact.
STEP = 2.0**-10
# The relative error that a derivative has here at most.
TOLERANCE = 1e-5
# A slope may change so much at an argument, beside what its second derivative changes it.
SMOOTH = 1e-6


class Unclear(Exception):
    """A function has no derivative, or one that differences do not tell."""


def jacobian(function: Callable[[Any], Any], x: Any) -> Any:
    """The derivatives of a function's elements, its shape first, by those of x.

    Raises:
        Unclear: it is not finite or has a kink there.
    """
    center = function(x)
    columns = [_column(function, center, x, place) for place in np.ndindex(x.shape)]
    shape = (*center.shape, *x.shape)
    return np.stack(columns, -1).reshape(shape) if columns else np.zeros(shape)


def _column(function: Callable[[Any], Any], center: Any, x: Any, place: tuple[int, ...]) -> Any:
    """The derivatives by one element."""

    def at(steps: int) -> Any:
        moved = x.copy()
        moved[place] += steps * STEP
        found = function(moved)
        if found.shape != center.shape:
            raise Unclear
        return found

    near, far = ((at(steps), at(-steps)) for steps in (1, 2))
    slopes = [(one - other) / (2 * n * STEP) for n, (one, other) in enumerate((near, far), 1)]
    # From one side to the other; twice as much at twice the distance, but for a kink.
    bends = [(a - 2 * center + b) / (n * STEP) for n, (a, b) in enumerate((near, far), 1)]
    found = (4 * slopes[0] - slopes[1]) / 3
    kink = np.abs(bends[1] - 2 * bends[0])
    if not np.all(kink <= SMOOTH * np.maximum(1, np.abs(found).max(initial=0))):
        raise Unclear
    return found
