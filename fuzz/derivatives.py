"""Compute derivatives by central differences, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# The distance between neighbouring points: a power of 2, so that its sum with an input of few bits
# is exact.
STEP = 2.0**-10
# The largest relative error of a derivative.
TOLERANCE = 1e-5
# A point is a kink if the second difference ``kink`` in _compute_column, divided by max(1, the
# largest |slope|), exceeds this number.
MAX_KINK = 1e-6


class NoDerivative(Exception):
    """The function has no derivative at a point, or differences cannot compute it."""


def compute_jacobian(function: Callable[[Any], Any], x: Any) -> Any:
    """Return the Jacobian of a function at x.

    Its shape is the shape of the function's value, followed by the shape of x.

    Raises:
        NoDerivative: the function is not finite or has a kink at x, or the shape of its value
            changes near x.
    """
    center = function(x)
    columns = [_compute_column(function, center, x, index) for index in np.ndindex(x.shape)]
    shape = (*center.shape, *x.shape)
    return np.stack(columns, -1).reshape(shape) if columns else np.zeros(shape)


def _compute_column(
    function: Callable[[Any], Any], center: Any, x: Any, index: tuple[int, ...]
) -> Any:
    """Return the derivative of the function's value with respect to the element x[index]."""

    def evaluate(steps: int) -> Any:
        moved = x.copy()
        moved[index] += steps * STEP
        value = function(moved)
        if value.shape != center.shape:
            raise NoDerivative
        return value

    near, far = ((evaluate(steps), evaluate(-steps)) for steps in (1, 2))
    slopes = [(right - left) / (2 * n * STEP) for n, (right, left) in enumerate((near, far), 1)]
    # The change of the slope from the left to the right side of x. Without a kink at x, the change
    # doubles if the distance doubles.
    bends = [(a - 2 * center + b) / (n * STEP) for n, (a, b) in enumerate((near, far), 1)]
    slope = (4 * slopes[0] - slopes[1]) / 3
    kink = np.abs(bends[1] - 2 * bends[0])
    if not np.all(kink <= MAX_KINK * np.maximum(1, np.abs(slope).max(initial=0))):
        raise NoDerivative
    return slope
