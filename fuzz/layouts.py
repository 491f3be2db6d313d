"""Copy arrays into unusual memory layouts."""

from __future__ import annotations

from typing import Any

import numpy as np


def reversed_axes(array: Any) -> Any:
    """Return the same elements with negative strides."""
    turned = (..., *(slice(None, None, -1),) * array.ndim)
    return array[turned].copy()[turned]


def stepped(array: Any) -> Any:
    """Return the same elements as every second element of a larger array."""
    wide = np.zeros([2 * length for length in array.shape], array.dtype)
    every = (..., *(slice(None, None, 2),) * array.ndim)
    wide[every] = array
    return wide[every]


def unaligned(array: Any) -> Any:
    """Return a copy whose address is one byte after an aligned address."""
    buffer = np.zeros(array.nbytes + 1, "uint8")
    result = np.frombuffer(buffer.data, array.dtype, array.size, 1).reshape(array.shape)
    result[...] = array
    return result


def frozen(array: Any) -> Any:
    """Return the array, read-only."""
    array.flags.writeable = False
    return array


def repeated(array: Any) -> Any:
    """Return the first row repeated; all rows share their memory."""
    return np.broadcast_to(array[:1], array.shape) if array.ndim and len(array) else array


def spread(array: Any) -> Any:
    """Return the first row repeated; each row has its own memory."""
    return repeated(array).copy()
