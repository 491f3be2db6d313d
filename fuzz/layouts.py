"""Copy arrays into unusual memory layouts. The text of a program calls these functions."""

from __future__ import annotations

from typing import Any

import numpy as np


def reversed_axes(array: Any) -> Any:
    """Return a copy that is stored backwards: all its strides are negative."""
    backwards = (..., *(slice(None, None, -1),) * array.ndim)
    return array[backwards].copy()[backwards]


def stepped(array: Any) -> Any:
    """Return a copy whose elements are every second element of a larger array on all axes."""
    wide = np.zeros([2 * length for length in array.shape], array.dtype)
    every_second = (..., *(slice(None, None, 2),) * array.ndim)
    wide[every_second] = array
    return wide[every_second]


def unaligned(array: Any) -> Any:
    """Return a copy whose address is one byte after an aligned address."""
    buffer = np.zeros(array.nbytes + 1, "uint8")
    result = np.frombuffer(buffer.data, array.dtype, array.size, 1).reshape(array.shape)
    result[...] = array
    return result


def frozen(array: Any) -> Any:
    """Make the array read-only; return it."""
    array.flags.writeable = False
    return array


def repeated(array: Any) -> Any:
    """Return an array of the same shape whose rows are all the first row, in shared memory."""
    return np.broadcast_to(array[:1], array.shape) if array.ndim and len(array) else array


def spread(array: Any) -> Any:
    """Return an array of the same shape whose rows are copies of the first row."""
    return repeated(array).copy()
