"""The speed of this environment's BLAS: ``-m theano_fast.gemm`` prints it as JSON."""

import json
import time
from typing import Any

import numpy as np

from theano_fast import blas, threads

# A scan's small matrices, a layer's, and a size at which arithmetic is all that counts.
SIZES = (64, 256, 2000)
DTYPES = ("float32", "float64")
# Long enough for one product of 2000 x 2000 and for the clock.
LEAST_SECONDS = 0.2


def measure() -> dict[str, Any]:
    """Return this process's BLAS and its GFLOP/s for each size and type, on 1 and all threads."""
    np.dot(np.eye(2), np.eye(2))
    (library,) = blas.loaded()
    rates = {}
    for count in sorted({1, threads.available()}):
        blas.set_threads(library, count)
        for dtype in DTYPES:
            for size in SIZES:
                rates[f"{dtype} {size} on {count}"] = gflops(size, dtype)
    return {"blas": blas.version(library), "rates": rates}


def gflops(size: int, dtype: str) -> float:
    """Return the GFLOP/s of products of two square matrices of an order."""
    left, right, out = (np.ones((size, size), dtype) for _ in range(3))
    np.dot(left, right, out)
    calls, started, seconds = 0, time.perf_counter(), 0.0
    while seconds < LEAST_SECONDS:
        np.dot(left, right, out)
        calls += 1
        seconds = time.perf_counter() - started
    return 2 * size**3 * calls / seconds / 1e9


if __name__ == "__main__":
    print(json.dumps(measure()))
