"""Values as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np


def encoded(value: Any) -> list[Any]:
    """A value's type, shape and elements, complex ones as pairs."""
    if not isinstance(value, (np.ndarray, np.generic)):
        return [type(value).__name__, [], [str(value)]]
    array = np.asarray(value)
    flat = array.reshape(-1)
    if array.dtype.kind == "c":
        elements = [[float(each.real), float(each.imag)] for each in flat]
    else:
        elements = flat.tolist()
    return [str(array.dtype), list(array.shape), elements]
