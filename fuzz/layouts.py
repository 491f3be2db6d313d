"""Arrays of other layouts in memory than NumPy makes by itself."""

from __future__ import annotations

from typing import Any

import numpy as np


def reversed_axes(array: Any) -> Any:
    """The same elements, all strides negative."""
    turned = (..., *(slice(None, None, -1),) * array.ndim)
    return array[turned].copy()[turned]


def stepped(array: Any) -> Any:
    """The same elements, every second of a larger array."""
    wide = np.zeros([2 * length for length in array.shape], array.dtype)
    every = (..., *(slice(None, None, 2),) * array.ndim)
    wide[every] = array
    return wide[every]


def unaligned(array: Any) -> Any:
    """The same elements, one byte beyond an aligned address."""
    buffer = np.zeros(array.nbytes + 1, "uint8")
    found = np.frombuffer(buffer.data, array.dtype, array.size, 1).reshape(array.shape)
    found[...] = array
    return found


def frozen(array: Any) -> Any:
    """The same elements, not to be written to."""
    array.flags.writeable = False
    return array


def repeated(array: Any) -> Any:
    """The first row for each row, in no memory of their own."""
    return np.broadcast_to(array[:1], array.shape) if array.ndim and len(array) else array


def spread(array: Any) -> Any:
    """The first row for each row, each in its own memory."""
    return repeated(array).copy()
