"""Encode values as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np


def encode(value: Any) -> list[Any]:
    """Return a value's type, shape and elements; complex elements are pairs."""
    if not isinstance(value, (np.ndarray, np.generic)):
        return [type(value).__name__, [], [str(value)]]
    array = np.asarray(value)
    flat = array.reshape(-1)
    if array.dtype.kind == "c":
        elements = [[float(element.real), float(element.imag)] for element in flat]
    else:
        elements = flat.tolist()
    return [str(array.dtype), list(array.shape), elements]
