"""Check with Theano's ``misc/check_blas.py`` that Theano's gemm is as fast as NumPy's dot.

Both should call the same BLAS on the same number of threads. At this size, arithmetic dominates the
time. So if Theano is slower, it calls another library or uses fewer threads.
"""

import time
from typing import Any

import numpy as np
import theano
import theano.misc.check_blas

from theano_fast.checks.result import Options, Result

SIZE, CALLS = 2000, 10
# The largest allowed ratio of Theano's time to NumPy's time.
LARGEST_RATIO = 1.25
# Each round times Theano, then NumPy. The best round counts, because other programs can only slow a
# round down. After FEWEST_ROUNDS, rounds continue only while the ratio is too large.
FEWEST_ROUNDS, MOST_ROUNDS = 2, 8


def run(options: Options) -> Result:
    """Time products of Theano and NumPy; fail if Theano takes over 1.25 times NumPy's time."""
    measurements: dict[str, Any] = {"size": SIZE, "calls": CALLS, "largest_ratio": LARGEST_RATIO}
    failures, summary = [], []
    for dtype in ("float64", "float32"):
        theano_seconds, numpy_seconds, implementation = measure_best_times(dtype)
        ratio, gflops = theano_seconds / numpy_seconds, 2 * SIZE**3 * CALLS / theano_seconds / 1e9
        summary.append(
            f"{dtype} {theano_seconds:.2f} s, {gflops:.1f} GFLOP/s, {ratio:.2f} x NumPy's time"
        )
        measurements[dtype] = {
            "gflops": gflops,
            "implementation": implementation,
            "numpy": numpy_seconds,
            "theano": theano_seconds,
        }
        if ratio > LARGEST_RATIO:
            failures.append(f"{dtype}: gemm takes {ratio:.2f} times as long as numpy.dot")
        if "direct Theano binding" not in implementation or "without" in implementation:
            failures.append(f"{dtype}: gemm runs on {implementation}")
    return Result("; ".join(summary), tuple(failures), measurements=measurements)


def measure_best_times(dtype: str) -> tuple[float, float, str]:
    """Return Theano's and NumPy's least seconds for CALLS products, and Theano's implementation.

    Theano names its implementation, such as "CPU (with direct Theano binding to blas)".
    """
    theano.config.floatX = dtype
    theano_seconds, numpy_seconds = float("inf"), float("inf")
    for round_number in range(MOST_ROUNDS):
        seconds, implementation = theano.misc.check_blas.execute(
            verbose=False, M=SIZE, N=SIZE, K=SIZE, iters=CALLS
        )
        theano_seconds, numpy_seconds = (
            min(theano_seconds, seconds),
            min(numpy_seconds, measure_numpy(dtype)),
        )
        if round_number + 1 >= FEWEST_ROUNDS and theano_seconds <= LARGEST_RATIO * numpy_seconds:
            break
    return theano_seconds, numpy_seconds, implementation


def measure_numpy(dtype: str) -> float:
    """Return NumPy's seconds for CALLS products of SIZE x SIZE matrices."""
    a, b, out = (np.ones((SIZE, SIZE), dtype) for _ in range(3))
    np.dot(a, b, out)
    started = time.perf_counter()
    for _ in range(CALLS):
        np.dot(a, b, out)
    return time.perf_counter() - started
