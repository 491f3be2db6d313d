"""Check in g++'s optimization notes that elementwise loops are vectorized for this processor.

The check reports times without a limit, because they also depend on the machine's load.
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import theano
import theano.tensor as T
from numpy.core._multiarray_umath import __cpu_features__ as features

from theano_fast.checks.libm import ROUNDS, measure_seconds
from theano_fast.checks.result import Options, Result

DTYPES = ("float32", "float64")
# These loops need only SSE2, which all x86-64 processors have.
ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "x * y + x": lambda x, y: x * y + x,
}
# These loops call vector functions of libtheano_functions, which need fused multiply-add (FMA3).
# With amdlibm, the loops call amdlibm's functions.
FUNCTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "softplus(x)": lambda x, _: T.nnet.softplus(x),
    "x ** y": lambda x, y: x**y,
    "tanh(x) * sigmoid(x) + exp(x)": lambda x, _: T.tanh(x) * T.nnet.sigmoid(x) + T.exp(x),
}
# The timed expression of FUNCTIONS.
TIMED = "tanh(x) * sigmoid(x) + exp(x)"
SIZE = 100_000
# The end of this check's summary on processors without FMA3.
SLOW = "without fused multiply-add, exp, log, log1p, pow and tanh are not vectorized"
VECTORIZED = re.compile(r"optimized: +loop vectorized using (\d+) byte vectors")


@dataclass(frozen=True)
class Loop:
    """A compiled loop; ``widths`` are the sizes of its vectors in bytes, empty if it has none."""

    name: str
    function: Any
    widths: frozenset[int]


def run(options: Options) -> Result:
    """Compile loops, read which loops g++ vectorized, and time one loop against the C library."""
    cxx = theano.config.cxx
    if not cxx or shutil.which(cxx) is None:
        return Result(skipped=f"no C++ compiler: theano.config.cxx is {cxx!r}")
    expressions = {**ARITHMETIC, **(FUNCTIONS if features["FMA3"] else {})}
    loops = {
        (name, dtype): compile_loop(name, expression, dtype)
        for name, expression in expressions.items()
        for dtype in DTYPES
    }
    scalar = ", ".join(loop.name for loop in loops.values() if not loop.widths)
    failures = [f"g++ {' '.join(list_flags())} does not vectorize {scalar}"] if scalar else []
    widths = sorted(set().union(*(loop.widths for loop in loops.values())))
    summary = f"{len(loops)} loops, in vectors of {' and '.join(map(str, widths))} bytes"
    if not features["FMA3"]:
        return Result(
            summary=f"{summary}; {SLOW}",
            failures=tuple(failures),
            measurements={"widths": widths, "flags": list_flags()},
        )
    timed = {dtype: measure_times(loops[TIMED, dtype], dtype) for dtype in DTYPES}
    ratios = ", ".join(f"{dtype} {library / own:.1f}" for dtype, (own, library) in timed.items())
    return Result(
        summary=f"{summary}; speed-up over the C library's functions: {ratios}",
        failures=tuple(failures),
        measurements={"widths": widths, "flags": list_flags(), "seconds": timed},
    )


def list_flags() -> list[str]:
    """Return the g++ flags that select this processor, then the user's gcc.cxxflags."""
    from theano.gof.cmodule import GCC_compiler  # noqa: PLC0415 (Theano imports it when needed)

    machine = [flag for flag in GCC_compiler.compile_args() if flag.startswith("-m")]
    return list(dict.fromkeys([*machine, *theano.config.gcc.cxxflags.split()]))


def compile_loop(
    name: str, expression: Callable[[Any, Any], Any], dtype: str, define: str = ""
) -> Loop:
    """Compile the loop of an expression of two vectors, and parse g++'s notes about the loop.

    Args:
        name: the expression in messages.
        expression: a function that returns the symbolic result of two symbolic vectors.
        dtype: the dtype of the vectors.
        define: an additional flag of g++, such as "-DNAME".
    """
    x, y = (T.vector(dtype=dtype) for _ in range(2))
    with tempfile.TemporaryDirectory(prefix="theano-fast-") as folder:
        notes = Path(folder, "notes")
        # The name of the new folder is part of the flags. So no module in the cache has the same
        # flags, and g++ runs.
        words = [theano.config.gcc.cxxflags, define, f"-fopt-info-vec-optimized={notes}"]
        with theano.change_flags(**{"gcc.cxxflags": " ".join(filter(None, words))}):
            function = theano.function([x, y], expression(x, y), on_unused_input="ignore")
        text = notes.read_text() if notes.exists() else ""
    return Loop(f"{name} in {dtype}", function, parse_widths(text))


def parse_widths(notes: str) -> frozenset[int]:
    """Return the sizes of vectors in bytes, from the notes of g++ -fopt-info-vec-optimized."""
    return frozenset(map(int, VECTORIZED.findall(notes)))


def measure_times(loop: Loop, dtype: str) -> tuple[float, float]:
    """Return the seconds of a call of ``loop``, and of a copy that calls the C library.

    -DTHEANO_LIBM makes the copy call the C library's functions. Both loops compute TIMED.
    """
    with theano.change_flags(**{"lib.amdlibm": False}):
        library = compile_loop(TIMED, FUNCTIONS[TIMED], dtype, "-DTHEANO_LIBM")
    values = np.random.RandomState(1).uniform(-3, 3, SIZE).astype(dtype)
    functions = [lambda v, f=timed.function: f(v, v) for timed in (loop, library)]
    best = [min(measure_seconds(function, values) for _ in range(ROUNDS)) for function in functions]
    return best[0], best[1]
