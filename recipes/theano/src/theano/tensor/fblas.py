"""SciPy's BLAS, of which nothing is imported before a function is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy  # noqa: F401 (without it, there is no such module either)

DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))


def __getattr__(name: str) -> Any:
    # Its modules are a tenth of what import theano takes, and C code calls BLAS itself.
    return getattr(importlib.import_module("scipy.linalg.blas"), name)


class Functions(Mapping["np.dtype[Any]", Any]):
    """A function of BLAS by dtype."""

    def __init__(self, *names: str) -> None:
        """Take its name for each of DTYPES."""
        self.names = dict(zip(DTYPES, names, strict=True))

    def __getitem__(self, dtype: np.dtype[Any]) -> Any:
        return __getattr__(self.names[dtype])

    def __iter__(self) -> Iterator[np.dtype[Any]]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
