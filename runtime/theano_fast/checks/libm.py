"""Check that compiled modules call amdlibm, and check its errors; measure speed-ups."""

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

# The largest allowed error in units in the last place (ulp): glibc's bound for libmvec, on which
# amdlibm is built.
BOUND = 4
SAMPLES = 3000
# The repetitions of each special argument: twice the number of lanes of the widest vector.
REPEATS = 32
# The lengths of tested arrays, and the offsets of their first elements. The lengths leave every
# possible number of elements after the last whole vector.
LENGTHS, OFFSETS = range(36), range(3)
DTYPES = ("float32", "float64")
# The length of the arrays whose exponentials are counted. It is a multiple of every number of
# lanes, so that no scalar function computes the last elements.
COUNTED = 4096
# The counters of count.c.
COUNTERS = ("in_arrays", "in_loops")
# The command that prints the counters.
PROBE = (sys.executable, "-P", "-m", "theano_fast.checks.libm")
# The numbers of elements of timed arrays.
SIZES = (1_000, 100_000, 10_000_000)
# The best of ROUNDS counts, because other programs can only slow a round down. A round takes at
# least LEAST_SECONDS.
ROUNDS, LEAST_SECONDS = 3, 0.02


def compute_lstm(x: Any) -> Any:
    """Return the output of an LSTM cell; the rows of x are its three gates and its new memory."""
    cell = T.nnet.sigmoid(x[0]) * x[3] + T.nnet.sigmoid(x[1]) * T.tanh(x[3])
    return T.nnet.sigmoid(x[2]) * T.tanh(cell)


EXPRESSIONS: Mapping[str, Callable[[Any], Any]] = {
    "exp": T.exp,
    "log": T.log,
    "tanh": T.tanh,
    "sigmoid": T.nnet.sigmoid,
    "softplus": T.nnet.softplus,
    "pow": lambda x: x**x,
    "lstm": compute_lstm,
}


def run(options: Options) -> Result:
    """Count calls of amdlibm, check the errors of its functions, and time some of them.

    Report times without a limit, because they depend on the processor.
    """
    libm = options.stack.axes["libm"]
    if libm != "amdlibm":
        return Result(skipped=f"the stack's libm is {libm}, not amdlibm")
    if not theano.config.lib.amdlibm:
        return Result(failures=("lib.amdlibm is False, so Theano does not use amdlibm",))
    failures = find_count_failures()
    worst: dict[str, float] = {}
    for dtype in DTYPES:
        errors, wrong = check_fused_loop(dtype)
        worst |= errors
        failures += wrong
    rows = run_survey()
    failures += [f"{row.name} {row.wrong}" for row in rows if row.wrong]
    largest = max((error, name) for name, error in worst.items())
    timed = {
        f"{name} {dtype}": measure_expression(name, dtype)
        for dtype in DTYPES
        for name in EXPRESSIONS
    }
    return Result(
        summary=(
            f"{len(worst)} functions within {largest[0]:.2f} ulp ({largest[1]}),"
            f" {len(rows)} variants within {max(row.ulp for row in rows):.2f}"
        ),
        failures=tuple(failures),
        measurements={"ulp": worst, "survey": list(map(asdict, rows)), "seconds": timed},
        details=(*describe_functions(), *render_times(timed)),
    )


def describe_functions() -> tuple[str, ...]:
    """Return lines that name the functions of AMD's library; () if amdlibm contains none."""
    return tuple("  " + line for line in report.render_facts(facts.read_amdlibm()).splitlines())


def find_count_failures() -> list[str]:
    """Return a failure if amdlibm did not compute all exponentials of a process.

    The process preloads count.c, which counts the elements that amdlibm computes.
    """
    expected = COUNTED * len(DTYPES)
    with tempfile.TemporaryDirectory(prefix="theano-fast-") as folder:
        library = compile_source("count.c", Path(folder, "count.so"), "-fPIC", "-shared")
        environ = {**os.environ, "LD_PRELOAD": make_ld_preload(library)}
        probed = subprocess.run(PROBE, env=environ, capture_output=True, text=True, check=False)
    if probed.returncode != 0:
        return [f"the process that counts calls {verify.describe_exit(probed.returncode)}"]
    counts = json.loads(probed.stdout)
    return [
        f"amdlibm computed {counts[name]} of {expected} exponentials {name.replace('_', ' ')}"
        for name in COUNTERS
        if counts[name] != expected
    ]


def compile_source(name: str, file: Path, *options: str) -> Path:
    """Compile a source in this module's directory to ``file``; return ``file``.

    The compiler is the environment's g++, so the source must be valid as C and as C++.
    """
    compiler = [theano.config.cxx, "-x", "c++", "-fpermissive", "-w", "-O2", *options]
    source = Path(__file__).with_name(name)
    subprocess.run([*compiler, str(source), "-o", str(file), "-ldl", "-lm"], check=True)
    return file


def make_ld_preload(library: Path) -> str:
    """Return the value of LD_PRELOAD: the library, then the user's libraries."""
    return " ".join(filter(None, (str(library), os.environ.get("LD_PRELOAD"))))


def count_exponentials() -> dict[str, int]:
    """Compute exponentials with array functions and in fused loops; return the COUNTERS."""
    for dtype in DTYPES:
        x = T.vector(dtype=dtype)
        values = np.linspace(-1, 1, COUNTED).astype(dtype)
        theano.function([x], T.exp(x))(values)
        theano.function([x], T.exp(x) * x)(values)
    counter = ctypes.CDLL(None)
    return {name: ctypes.c_ssize_t.in_dll(counter, name).value for name in COUNTERS}


@dataclass(frozen=True)
class Row:
    """A row of survey.c's output: a variant of a function, and its largest error in ulp.

    ``lanes`` is 0 for an array function and 1 for a scalar function. ``wrong`` is the failure, ""
    if the variant is correct.
    """

    symbol: str
    function: str
    lanes: int
    ulp: float
    wrong: str

    @property
    def name(self) -> str:
        """The function, the kind of variant, and the symbol, for messages."""
        kinds = {0: "of arrays", 1: "of scalars"}
        return f"{self.function} {kinds.get(self.lanes, f'of {self.lanes} lanes')} ({self.symbol})"


def run_survey() -> list[Row]:
    """Run survey.c on all variants of amdlibm's functions that this processor supports."""
    library = Path(sys.base_prefix, "lib", "libamdlibm.so")
    with tempfile.TemporaryDirectory(prefix="theano-fast-") as folder:
        program = compile_source("survey.c", Path(folder, "survey"))
        done = subprocess.run(
            [program, library, "own"], stdout=subprocess.PIPE, text=True, check=True
        )
    return parse_survey(done.stdout)


def parse_survey(text: str) -> list[Row]:
    """Parse the output of survey.c."""
    rows = (line.split("\t") for line in text.splitlines())
    return [Row(row[0], row[1], int(row[2]), float(row[3]), row[4]) for row in rows]


def check_fused_loop(dtype: str) -> tuple[dict[str, float], list[str]]:
    """Check all functions in one fused loop of a dtype.

    The loop computes contiguous arrays of 0 to 35 elements, strided arrays and scalars. Its
    arguments are ordinary and special values in random order. DebugMode checks the special
    arguments again.

    Returns:
        the largest error in ulp of each function, by a name such as "exp float32", and the
        failures.
    """
    from theano_fast import libm  # noqa: PLC0415 (only stacks with amdlibm contain mpmath)

    on_arrays, on_scalars = compile_fused(dtype, ndim=1), compile_fused(dtype, ndim=0)
    worst_errors, failures = {}, []
    for i, function in enumerate(libm.FUNCTIONS):
        ordinary, special = (
            libm.sample(function, SAMPLES, dtype),
            libm.list_special(function, dtype),
        )
        exact_parts = [
            libm.compute_exact(function, ordinary),
            libm.compute_conventional(function, special),
        ]
        mixed = np.random.RandomState(3).permutation(len(exact_parts[0]) + len(exact_parts[1]))
        # Add vectors with only special lanes: the library may compute them with other code than
        # vectors with one special lane.
        order = [*mixed, *np.repeat(np.arange(len(exact_parts[0]), len(mixed)), REPEATS)]
        arguments = [np.concatenate(both)[order] for both in zip(ordinary, special, strict=True)]
        exact = np.concatenate(exact_parts)[order]
        worst = 0.0
        for description, part, compiled in list_calls(on_arrays, on_scalars, len(exact)):
            # A function of one argument ignores the second argument.
            pair = [values[part] for values in (arguments[0], arguments[-1])]
            errors = np.atleast_1d(libm.compute_errors(compiled(*pair)[i], exact[part]))
            worst = max(worst, *errors, 0.0)
            if not (errors <= BOUND).all():
                index = int(np.argmax(~(errors <= BOUND)))
                values = ", ".join(f"{np.atleast_1d(value[part])[index]!s}" for value in arguments)
                failures.append(
                    f"{function.name} {dtype}: the error is {errors[index]:.2f} ulp at ({values})"
                    f" {description}"
                )
                break
        worst_errors[f"{function.name} {dtype}"] = float(worst)
    return worst_errors, [
        *find_uncalled(on_arrays, dtype),
        *failures,
        *find_debug_failures(dtype),
    ]


def compile_fused(dtype: str, ndim: int, mode: Any = None) -> Any:
    """Compile a Theano function of two arrays that computes all functions in one loop."""
    from theano_fast import libm  # noqa: PLC0415 (only stacks with amdlibm contain mpmath)

    x, y = scalar.Scalar(dtype)("x"), scalar.Scalar(dtype)("y")
    results = [function.op(*(x, y)[: len(function.ranges)]) for function in libm.FUNCTIONS]
    inputs = [T.TensorType(dtype, (False,) * ndim)() for _ in range(2)]
    outputs = T.Elemwise(scalar.Composite([x, y], results))(*inputs)
    return theano.function(inputs, outputs, mode=mode)


def list_calls(on_arrays: Any, on_scalars: Any, count: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield (description, index of the arguments, function) for each call to make.

    Args:
        on_arrays: the compiled function of vectors.
        on_scalars: the compiled function of scalars.
        count: the number of arguments to choose from.
    """
    yield "in an array", slice(None), on_arrays
    yield "in a reversed array", slice(None, None, -1), on_arrays
    yield "in every third element", slice(1, None, 3), on_arrays
    start = 0
    for length in LENGTHS:
        for offset in OFFSETS:
            first = start + offset
            yield f"in {length} elements", slice(first, first + length), on_arrays
            start = (start + length) % (count - LENGTHS.stop - OFFSETS.stop)
    for i in range(0, count, 7):
        yield "as a scalar", i, on_scalars


def find_uncalled(function: Any, dtype: str) -> list[str]:
    """Return a failure for each amdlibm function whose vector variants the loop does not call."""
    from theano_fast import libm  # noqa: PLC0415 (only stacks with amdlibm contain mpmath)

    called = {
        symbol
        for thunk in thunks.read(function)
        for symbol in elf.read_undefined_symbols(Path(thunk.module).read_bytes())
    }
    suffix = "f" if dtype == "float32" else ""
    variants = {re.sub(r"_ZGV[bcde]N\d+v+_amd_", "", symbol) for symbol in called}
    names = [function.name for function in libm.FUNCTIONS]
    return [
        f"the {dtype} loop does not call amdlibm's {name}"
        for name in names
        if name + suffix not in variants
    ]


def find_debug_failures(dtype: str) -> list[str]:
    """Return the first difference between C and Python that DebugMode finds for special values."""
    from theano_fast import libm  # noqa: PLC0415 (only stacks with amdlibm contain mpmath)

    function = compile_fused(dtype, ndim=1, mode=DebugMode(check_isfinite=False))
    [values] = libm.list_special(libm.FUNCTIONS[0], dtype)
    try:
        # The second argument is 1, because Python's power raises an error for some others.
        function(values, np.ones_like(values))
    except DebugModeError as error:
        return [f"DebugMode, {dtype}: {str(error).strip().splitlines()[0]}"]
    return []


def measure_expression(name: str, dtype: str) -> dict[str, list[float]]:
    """Return the seconds of a call by library, amdlibm or libm; one number for each of SIZES."""
    x = T.matrix(dtype=dtype)
    functions = {}
    for library, flag in (("amdlibm", True), ("libm", False)):
        with theano.change_flags(**{"lib.amdlibm": flag}):
            functions[library] = theano.function([x], EXPRESSIONS[name](x))
    times: dict[str, list[float]] = {library: [] for library in functions}
    for size in SIZES:
        values = np.random.RandomState(1).uniform(0.1, 5, (4, size // 4)).astype(dtype)
        best = dict.fromkeys(functions, float("inf"))
        for _ in range(ROUNDS):
            for library, function in functions.items():
                best[library] = min(best[library], measure_seconds(function, values))
        for library, least in best.items():
            times[library].append(least)
    return times


def measure_seconds(function: Any, values: Any) -> float:
    """Return the mean seconds of calls during LEAST_SECONDS, after a call that is not timed."""
    function(values)
    calls, started, passed = 0, time.perf_counter(), 0.0
    while passed < LEAST_SECONDS:
        function(values)
        calls += 1
        passed = time.perf_counter() - started
    return passed / calls


def render_times(timed: Mapping[str, Mapping[str, list[float]]]) -> tuple[str, ...]:
    """Return a table: ns per element with amdlibm, and its speed-up over the C library."""
    lines = [f"  {'ns per element, speed-up':<28}" + "".join(f"{n:>18,}" for n in SIZES)]
    for name, times in timed.items():
        rows = zip(SIZES, times["amdlibm"], times["libm"], strict=True)
        cells = (
            f"{1e9 * amdlibm / size:>9.2f} {c_library / amdlibm:>7.1f}x"
            for size, amdlibm, c_library in rows
        )
        lines.append(f"  {name:<28}" + "".join(cells))
    return tuple(lines)


if __name__ == "__main__":
    print(json.dumps(count_exponentials()))
