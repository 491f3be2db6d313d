"""Theano's own ``misc/check_blas.py``, which prints times but never judges them, with a gate.

Theano's gemm and numpy's dot call the same library on the same threads: at a size where
arithmetic dominates, a slower Theano is bound to something else.
"""

import time
from typing import Any

import numpy as np
import theano
import theano.misc.check_blas

from theano_fast.checks.result import Options, Result

SIZE, CALLS = 2000, 10
LARGEST_RATIO = 1.25
# The best of a few rounds, taken in turns, is what the machine can do: other programs only ever
# make a round slower. More rounds are run only while the gate is not met.
FEWEST_ROUNDS, MOST_ROUNDS = 2, 8


def run(options: Options) -> Result:
    """Time both in float64 and float32; fail where Theano takes over 1.25 times numpy's time."""
    measurements: dict[str, Any] = {"size": SIZE, "calls": CALLS, "largest_ratio": LARGEST_RATIO}
    failures, summary = [], []
    for dtype in ("float64", "float32"):
        ours, numpys, implementation = best_times(dtype)
        ratio, gflops = ours / numpys, 2 * SIZE**3 * CALLS / ours / 1e9
        summary.append(f"{dtype} {ours:.2f} s, {gflops:.1f} GFLOP/s, {ratio:.2f} x numpy")
        measurements[dtype] = {
            "gflops": gflops,
            "implementation": implementation,
            "numpy": numpys,
            "theano": ours,
        }
        if ratio > LARGEST_RATIO:
            failures.append(f"{dtype}: gemm takes {ratio:.2f} times as long as numpy.dot")
        if "direct Theano binding" not in implementation or "without" in implementation:
            failures.append(f"{dtype}: gemm runs on {implementation}")
    return Result("; ".join(summary), tuple(failures), measurements=measurements)


def best_times(dtype: str) -> tuple[float, float, str]:
    """Return (Theano's, numpy's) least seconds for CALLS products, and check_blas's finding."""
    theano.config.floatX = dtype
    ours, numpys = float("inf"), float("inf")
    for turn in range(MOST_ROUNDS):
        seconds, implementation = theano.misc.check_blas.execute(
            verbose=False, M=SIZE, N=SIZE, K=SIZE, iters=CALLS
        )
        ours, numpys = min(ours, seconds), min(numpys, numpy_time(dtype))
        if turn + 1 >= FEWEST_ROUNDS and ours <= LARGEST_RATIO * numpys:
            break
    return ours, numpys, implementation


def numpy_time(dtype: str) -> float:
    """Return the seconds that numpy takes for CALLS products of SIZE x SIZE matrices."""
    left, right, out = (np.ones((SIZE, SIZE), dtype) for _ in range(3))
    np.dot(left, right, out)
    started = time.perf_counter()
    for _ in range(CALLS):
        np.dot(left, right, out)
    return time.perf_counter() - started
