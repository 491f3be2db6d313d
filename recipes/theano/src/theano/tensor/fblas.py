"""Lazy import of SciPy's BLAS functions, and mappings from dtypes to these functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from theano.misc import lazy_scipy

DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))


def __getattr__(name: str) -> Any:
    # Import scipy.linalg.blas only now: it takes a tenth of the time of "import theano", and C code
    # does not need these functions.
    return getattr(lazy_scipy.linalg.blas, name)


class Functions(Mapping["np.dtype[Any]", Any]):
    """Mapping from a dtype to a BLAS function, which is imported at its first access."""

    def __init__(self, *names: str) -> None:
        """Store the names of a function, such as "sgemm", one for each of DTYPES."""
        self.names = dict(zip(DTYPES, names, strict=True))

    def __getitem__(self, dtype: np.dtype[Any]) -> Any:
        return __getattr__(self.names[dtype])

    def __iter__(self) -> Iterator[np.dtype[Any]]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
