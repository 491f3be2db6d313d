"""Compiled modules call amdlibm, its functions are right, and how much faster they are."""

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import theano
import theano.tensor as T
from theano import scalar
from theano.compile.debugmode import DebugMode, DebugModeError

from theano_fast import elf, facts, report, thunks, verify
from theano_fast.checks.result import Options, Result

# In units in the last place: what glibc states of libmvec, on which amdlibm is built.
BOUND = 4
SAMPLES = 3000
# Twice the widest vector's length.
ALIKE = 32
# Of arrays that begin at each of their offsets: the whole vectors of each width, and what is left.
TAILS, OFFSETS = range(36), range(3)
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
    """Count the calls of a run, judge every function in every way it is called, and time some.

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
        errors, wrong = judge(dtype)
        worst |= errors
        failures += wrong
    rows = survey()
    failures += [f"{row.name} {row.wrong}" for row in rows if row.wrong]
    largest = max((error, name) for name, error in worst.items())
    timed = {f"{name} {dtype}": speed(name, dtype) for dtype in DTYPES for name in EXPRESSIONS}
    return Result(
        summary=(
            f"{len(worst)} functions within {largest[0]:.2f} ulp ({largest[1]}),"
            f" {len(rows)} variants within {max(row.ulp for row in rows):.2f}"
        ),
        failures=tuple(failures),
        measurements={"ulp": worst, "survey": list(map(asdict, rows)), "seconds": timed},
        details=(*bindings(), *render(timed)),
    )


def bindings() -> tuple[str, ...]:
    """Say which functions are AMD's own, and why others are not; nothing without AMD's library."""
    known = facts.amdlibm()
    return tuple("  " + line for line in report.render_facts(known).splitlines())


def count_failures() -> list[str]:
    """Return what is wrong with the numbers of elements that amdlibm is seen to compute."""
    expected = COUNTED * len(DTYPES)
    with tempfile.TemporaryDirectory(prefix="theano-fast-") as folder:
        library = compiled("count.c", Path(folder, "count.so"), "-fPIC", "-shared")
        environ = {**os.environ, "LD_PRELOAD": preloaded(library)}
        probed = subprocess.run(PROBE, env=environ, capture_output=True, text=True, check=False)
    if probed.returncode != 0:
        return [f"the process that counts calls {verify.ending(probed.returncode)}"]
    counts = json.loads(probed.stdout)
    return [
        f"amdlibm computed {counts[name]} of {expected} exponentials {name.replace('_', ' ')}"
        for name in COUNTERS
        if counts[name] != expected
    ]


def compiled(name: str, file: Path, *options: str) -> Path:
    """Compile a source that is beside this module, C and C++ in one, to file, which is returned."""
    compiler = [theano.config.cxx, "-x", "c++", "-fpermissive", "-w", "-O2", *options]
    source = Path(__file__).with_name(name)
    subprocess.run([*compiler, str(source), "-o", str(file), "-ldl", "-lm"], check=True)
    return file


def preloaded(library: Path) -> str:
    """Return LD_PRELOAD with the library before what the user has in it."""
    return " ".join(filter(None, (str(library), os.environ.get("LD_PRELOAD"))))


def probe() -> dict[str, int]:
    """Compute exponentials alone, by arrays, and fused, in loops; return what count.c counted."""
    for dtype in DTYPES:
        x = T.vector(dtype=dtype)
        values = np.linspace(-1, 1, COUNTED).astype(dtype)
        theano.function([x], T.exp(x))(values)
        theano.function([x], T.exp(x) * x)(values)
    counter = ctypes.CDLL(None)
    return {name: ctypes.c_ssize_t.in_dll(counter, name).value for name in COUNTERS}


@dataclass(frozen=True)
class Row:
    """What survey.c found of a variant of a function: its error, what is wrong unless empty."""

    symbol: str
    function: str
    lanes: int
    ulp: float
    wrong: str

    @property
    def name(self) -> str:
        """The function, by what a person calls it, and the symbol."""
        kinds = {0: "of arrays", 1: "of scalars"}
        return f"{self.function} {kinds.get(self.lanes, f'of {self.lanes} lanes')} ({self.symbol})"


def survey() -> list[Row]:
    """Return what survey.c finds of amdlibm: of all variants that this processor can run."""
    library = Path(sys.prefix, "lib", "libamdlibm.so")
    with tempfile.TemporaryDirectory(prefix="theano-fast-") as folder:
        program = compiled("survey.c", Path(folder, "survey"))
        done = subprocess.run(
            [program, library, "own"], stdout=subprocess.PIPE, text=True, check=True
        )
    return parse(done.stdout)


def parse(text: str) -> list[Row]:
    """Read the lines of survey.c."""
    rows = (line.split("\t") for line in text.splitlines())
    return [Row(row[0], row[1], int(row[2]), float(row[3]), row[4]) for row in rows]


def judge(dtype: str) -> tuple[dict[str, float], list[str]]:
    """Return each function's largest error in ulp, and what is wrong.

    One fused loop computes them all: of contiguous arrays and their tails, of strided ones, of
    scalars, and in DebugMode. Ordinary and special arguments are mixed at random.
    """
    from theano_fast import libm  # noqa: PLC0415 (its mpmath comes with amdlibm only)

    vector, number = fused(dtype, ndim=1), fused(dtype, ndim=0)
    errors, wrong = {}, []
    for i, each in enumerate(libm.FUNCTIONS):
        ordinary, special = libm.sample(each, SAMPLES, dtype), libm.special(each, dtype)
        right = [libm.exact(each, ordinary), libm.conventional(each, special)]
        mixed = np.random.RandomState(3).permutation(len(right[0]) + len(right[1]))
        # A vector whose lanes are all special can take another way than one with any that is.
        order = [*mixed, *np.repeat(np.arange(len(right[0]), len(mixed)), ALIKE)]
        arguments = [np.concatenate(both)[order] for both in zip(ordinary, special, strict=True)]
        exact = np.concatenate(right)[order]
        worst = 0.0
        for way, part, function in ways(vector, number, len(exact)):
            # What is not at hand is an argument of a function of the others.
            given = [values[part] for values in (arguments[0], arguments[-1])]
            found = np.atleast_1d(libm.errors(function(*given)[i], exact[part]))
            worst = max(worst, *found, 0.0)
            if not (found <= BOUND).all():
                at = int(np.argmax(~(found <= BOUND)))
                values = ", ".join(f"{np.atleast_1d(value[part])[at]!s}" for value in arguments)
                wrong.append(f"{each.name} {dtype} errs by {found[at]:.2f} ulp at ({values}) {way}")
                break
        errors[f"{each.name} {dtype}"] = float(worst)
    return errors, [*uncalled(vector, dtype), *wrong, *debugged(dtype)]


def fused(dtype: str, ndim: int, mode: Any = None) -> Any:
    """Return a compiled function of two arguments that computes all functions in one loop."""
    from theano_fast import libm  # noqa: PLC0415 (its mpmath comes with amdlibm only)

    x, y = scalar.Scalar(dtype)("x"), scalar.Scalar(dtype)("y")
    results = [each.op(*(x, y)[: len(each.ranges)]) for each in libm.FUNCTIONS]
    inputs = [T.TensorType(dtype, (False,) * ndim)() for _ in range(2)]
    outputs = T.Elemwise(scalar.Composite([x, y], results))(*inputs)
    return theano.function(inputs, outputs, mode=mode)


def ways(vector: Any, number: Any, count: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield how a function is called: in words, which of count arguments, and the function."""
    yield "in an array", slice(None), vector
    yield "in an array backwards", slice(None, None, -1), vector
    yield "in every third element", slice(1, None, 3), vector
    start = 0
    for length in TAILS:
        for offset in OFFSETS:
            first = start + offset
            yield f"in {length} elements", slice(first, first + length), vector
            start = (start + length) % (count - TAILS.stop - OFFSETS.stop)
    for i in range(0, count, 7):
        yield "as a scalar", i, number


def uncalled(function: Any, dtype: str) -> list[str]:
    """Return the functions whose vector variant a compiled loop does not call."""
    from theano_fast import libm  # noqa: PLC0415 (its mpmath comes with amdlibm only)

    called = {symbol for thunk in thunks.read(function) for symbol in elf.undefined(thunk.module)}
    suffix = "f" if dtype == "float32" else ""
    variants = {re.sub(r"_ZGV[bcde]N\d+v+_amd_", "", symbol) for symbol in called}
    missing = [each.name for each in libm.FUNCTIONS if each.name + suffix not in variants]
    return [f"the {dtype} loop does not call amdlibm's {name}" for name in missing]


def debugged(dtype: str) -> list[str]:
    """Return what DebugMode, which compares with Python's results, says of special arguments."""
    from theano_fast import libm  # noqa: PLC0415 (its mpmath comes with amdlibm only)

    function = fused(dtype, ndim=1, mode=DebugMode(check_isfinite=False))
    [values] = libm.special(libm.FUNCTIONS[0], dtype)
    try:
        # Python's own power raises an error for other pairs.
        function(values, np.ones_like(values))
    except DebugModeError as error:
        return [f"DebugMode, {dtype}: {str(error).strip().splitlines()[0]}"]
    return []


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
