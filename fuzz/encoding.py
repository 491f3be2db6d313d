"""Encode values in a form that JSON can contain."""

from __future__ import annotations

from typing import Any

import numpy as np


def encode(value: Any) -> list[Any]:
    """Return [type, shape, elements in C order] of an array.

    A complex element is [real, imaginary]. A value that is not an array becomes [type, [], [text]].
    """
    if not isinstance(value, (np.ndarray, np.generic)):
        return [type(value).__name__, [], [str(value)]]
    array = np.asarray(value)
    flat = array.reshape(-1)
    if array.dtype.kind == "c":
        elements = [[float(element.real), float(element.imag)] for element in flat]
    else:
        elements = flat.tolist()
    return [str(array.dtype), list(array.shape), elements]
