"""Compiled modules call amdlibm, its functions are right, and how much faster they are."""

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import theano
import theano.tensor as T
from theano import scalar

from theano_fast import elf, thunks, verify
from theano_fast.checks.result import Options, Result

# In units in the last place: what glibc states of libmvec, on which amdlibm is built.
BOUND = 4
SAMPLES = 3000
DTYPES = ("float32", "float64")
# A multiple of every vector's length, so that no element is left to a scalar function.
COUNTED = 4096
COUNTERS = ("in_arrays", "in_loops")
PROBE = (sys.executable, "-P", "-m", "theano_fast.checks.libm")
SIZES = (1_000, 100_000, 10_000_000)
# The best of a few rounds, taken in turns: other programs only ever make a round slower.
ROUNDS, LEAST_SECONDS = 3, 0.02


def lstm(x: Any) -> Any:
    """Return the output of an LSTM cell whose gates are the rows of x."""
    cell = T.nnet.sigmoid(x[0]) * x[3] + T.nnet.sigmoid(x[1]) * T.tanh(x[3])
    return T.nnet.sigmoid(x[2]) * T.tanh(cell)


EXPRESSIONS: Mapping[str, Callable[[Any], Any]] = {
    "exp": T.exp,
    "log": T.log,
    "tanh": T.tanh,
    "sigmoid": T.nnet.sigmoid,
    "softplus": T.nnet.softplus,
    "pow": lambda x: x**x,
    "lstm": lstm,
}


def run(options: Options) -> Result:
    """Count the calls of a run, judge every function, and time common expressions.

    The times are told and not judged: they are the processor's.
    """
    libm = options.stack.axes["libm"]
    if libm != "amdlibm":
        return Result(skipped=f"the stack's libm is {libm}, not amdlibm")
    if not theano.config.lib.amdlibm:
        return Result(failures=("lib.amdlibm is False: Theano does not use amdlibm",))
    failures = count_failures()
    worst: dict[str, float] = {}
    for dtype in DTYPES:
        errors, uncalled = judge(dtype)
        worst |= errors
        failures += [f"the {dtype} loop does not call amdlibm's {name}" for name in uncalled]
    failures += [f"{name} errs by {e:.2f} ulp" for name, e in worst.items() if not e <= BOUND]
    largest = max(worst, key=lambda name: worst[name])
    timed = {f"{name} {dtype}": speed(name, dtype) for dtype in DTYPES for name in EXPRESSIONS}
    return Result(
        summary=f"{len(worst)} functions within {worst[largest]:.2f} ulp ({largest})",
        failures=tuple(failures),
        measurements={"ulp": worst, "seconds": timed},
        details=render(timed),
    )


def count_failures() -> list[str]:
    """Return what is wrong with the numbers of elements that amdlibm is seen to compute."""
    expected = COUNTED * len(DTYPES)
    with tempfile.TemporaryDirectory(prefix="theano-fast-") as folder:
        library = Path(folder, "count.so")
        source = Path(__file__).with_name("count.c")
        compiler = [*theano.config.cxx.split(), "-x", "c", "-w", "-O2", "-fPIC", "-shared"]
        subprocess.run([*compiler, str(source), "-o", str(library)], check=True)
        environ = {**os.environ, "LD_PRELOAD": str(library)}
        probed = subprocess.run(PROBE, env=environ, capture_output=True, text=True, check=False)
    if probed.returncode != 0:
        return [f"the process that counts calls {verify.ending(probed.returncode)}"]
    counts = json.loads(probed.stdout)
    return [
        f"amdlibm computed {counts[name]} of {expected} exponentials {name.replace('_', ' ')}"
        for name in COUNTERS
        if counts[name] != expected
    ]


def probe() -> dict[str, int]:
    """Compute exponentials alone, by arrays, and fused, in loops; return what count.c counted."""
    for dtype in DTYPES:
        x = T.vector(dtype=dtype)
        values = np.linspace(-1, 1, COUNTED).astype(dtype)
        theano.function([x], T.exp(x))(values)
        theano.function([x], T.exp(x) * x)(values)
    counter = ctypes.CDLL(None)
    return {name: ctypes.c_ssize_t.in_dll(counter, name).value for name in COUNTERS}


def judge(dtype: str) -> tuple[dict[str, float], list[str]]:
    """Return each function's largest error in ulp, and those whose vector variant is not called.

    One fused loop computes them all.
    """
    from theano_fast import libm  # noqa: PLC0415 (its mpmath comes with amdlibm only)

    x, y = scalar.Scalar(dtype)("x"), scalar.Scalar(dtype)("y")
    results = [each.op(*(x, y)[: len(each.ranges)]) for each in libm.FUNCTIONS]
    fused = T.Elemwise(scalar.Composite([x, y], results))
    inputs = [T.vector(dtype=dtype) for _ in range(2)]
    function = theano.function(inputs, fused(*inputs))
    errors = {}
    for i, each in enumerate(libm.FUNCTIONS):
        arguments = libm.sample(each, SAMPLES, dtype)
        got = function(arguments[0], arguments[-1])[i]
        errors[f"{each.name} {dtype}"] = float(libm.errors(each, got, arguments).max())
    called = {symbol for thunk in thunks.read(function) for symbol in elf.undefined(thunk.module)}
    suffix = "f" if dtype == "float32" else ""
    variants = {re.sub(r"_ZGV[bcde]N\d+v+_amd_", "", symbol) for symbol in called}
    return errors, [each.name for each in libm.FUNCTIONS if each.name + suffix not in variants]


def speed(name: str, dtype: str) -> dict[str, list[float]]:
    """Return the seconds of one call with amdlibm and with plain libm, at each of SIZES."""
    x = T.matrix(dtype=dtype)
    functions = {}
    for library, flag in (("amdlibm", True), ("libm", False)):
        with theano.change_flags(**{"lib.amdlibm": flag}):
            functions[library] = theano.function([x], EXPRESSIONS[name](x))
    found: dict[str, list[float]] = {library: [] for library in functions}
    for size in SIZES:
        values = np.random.RandomState(1).uniform(0.1, 5, (4, size // 4)).astype(dtype)
        best = dict.fromkeys(functions, float("inf"))
        for _ in range(ROUNDS):
            for library, function in functions.items():
                best[library] = min(best[library], seconds(function, values))
        for library, least in best.items():
            found[library].append(least)
    return found


def seconds(function: Any, values: Any) -> float:
    """Return the mean seconds of calls that take LEAST_SECONDS together, after one that is not."""
    function(values)
    calls, started, passed = 0, time.perf_counter(), 0.0
    while passed < LEAST_SECONDS:
        function(values)
        calls += 1
        passed = time.perf_counter() - started
    return passed / calls


def render(timed: Mapping[str, Mapping[str, list[float]]]) -> tuple[str, ...]:
    """Return a table: ns per element with amdlibm, and how many times as long libm takes."""
    lines = [f"  {'ns per element, times libm':<28}" + "".join(f"{n:>18,}" for n in SIZES)]
    for name, both in timed.items():
        pairs = zip(SIZES, both["amdlibm"], both["libm"], strict=True)
        cells = (
            f"{1e9 * ours / size:>9.2f} {theirs / ours:>7.1f}x" for size, ours, theirs in pairs
        )
        lines.append(f"  {name:<28}" + "".join(cells))
    return tuple(lines)


if __name__ == "__main__":
    print(json.dumps(probe()))
