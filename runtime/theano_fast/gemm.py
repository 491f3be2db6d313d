"""Measure matrix products with this environment's BLAS: ``-m theano_fast.gemm`` prints JSON."""

import json
import time
from typing import Any

import numpy as np

from theano_fast import blas, threads

# Orders of square matrices. 64 is typical of scans, and 256 is typical of layers. With order 2000,
# arithmetic dominates the time.
SIZES = (64, 256, 2000)
DTYPES = ("float32", "float64")
# Repeat a product for at least this time, which is long compared with the clock's resolution.
LEAST_SECONDS = 0.2


def measure() -> dict[str, Any]:
    """Return the BLAS and its GFLOP/s for each dtype and size, on 1 thread and on all threads."""
    # Make NumPy load its BLAS.
    np.dot(np.eye(2), np.eye(2))
    (library,) = blas.list_loaded()
    rates = {}
    for count in sorted({1, threads.count_available()}):
        blas.set_threads(library, count)
        for dtype in DTYPES:
            for size in SIZES:
                rates[f"{dtype} {size} on {count}"] = measure_gflops(size, dtype)
    return {"blas": blas.read_version(library), "rates": rates}


def measure_gflops(size: int, dtype: str) -> float:
    """Return the GFLOP/s of products of two square matrices of order ``size``."""
    a, b, out = (np.ones((size, size), dtype) for _ in range(3))
    np.dot(a, b, out)
    calls, started, seconds = 0, time.perf_counter(), 0.0
    while seconds < LEAST_SECONDS:
        np.dot(a, b, out)
        calls += 1
        seconds = time.perf_counter() - started
    return 2 * size**3 * calls / seconds / 1e9


if __name__ == "__main__":
    print(json.dumps(measure()))
