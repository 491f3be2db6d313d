"""Check BLAS results of Theano and SciPy against extended precision, with a proven error bound.

Silently wrong results are a BLAS's worst defect: two OpenMP run times in one process caused wrong
products (Theano's issue 6568). So check each routine with all dtypes, memory orders, strides and
thread counts, also with empty operands.
"""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg.blas
import theano
import theano.tensor as T

from theano_fast import accuracy, blas, threads
from theano_fast.checks.result import Options, Result

# The extents of the axes (i, j, k) of KERNELS. OpenBLAS and MKL use several threads only for large
# extents, such as the last extents.
EXTENTS = (
    (1, 1, 1), (2, 3, 5), (17, 33, 8), (64, 16, 65), (0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0),
    (257, 129, 130),
)  # fmt: skip
BATCH = 3
DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Kernel:
    """A tested product, with einsum's subscripts.

    With ``scales`` (beta, alpha), the result is beta * accumulator + alpha * product.
    """

    name: str
    subscripts: str
    scales: tuple[float, float] | None = None


class Reference(NamedTuple):
    """The operands (a, b, accumulator), the exact result, and the bound of the computed error."""

    operands: tuple[Any, Any, Any]
    expected: Any
    bound: Any


KERNELS = (
    Kernel("dot22", "ij,jk->ik"),
    Kernel("gemm", "ij,jk->ik", (-0.5, 2.0)),
    Kernel("gemv", "ij,j->i", (-0.5, 2.0)),
    Kernel("ger", "i,k->ik", (1.0, 2.0)),
    Kernel("batched_dot", "bij,bjk->bik"),
)


def run(options: Options) -> Result:
    """Run each kernel in each dtype and with each thread count, and the complex inner products."""
    compiled = {(k, d): compile_kernel(k, d) for k, d in itertools.product(KERNELS, DTYPES)}
    library = next(b for b in blas.list_loaded() if b.family == options.stack.axes["blas"])
    counts = choose_thread_counts(threads.count_available())
    failures: list[str] = []
    products, worst = 0, dict.fromkeys(DTYPES, 0.0)
    for count in counts:
        blas.set_threads(library, count)
        for (kernel, dtype), function in compiled.items():
            for extents in EXTENTS:
                errors = [*compute_errors(kernel, function, extents, dtype)]
                products += len(errors)
                layout, error = max(errors, key=lambda pair: pair[1])
                worst[dtype] = max(worst[dtype], error)
                if not error <= 1:
                    failures.append(
                        f"{kernel.name} {dtype} {extents} on {count} threads, {layout}:"
                        f" the error is {error:.3g} times its bound"
                    )
    failures += find_complex_failures()
    return Result(
        summary=f"{products} products on {counts} threads within "
        + ", ".join(f"{worst[dtype]:.2f} ({dtype})" for dtype in DTYPES)
        + " times Higham's bound",
        failures=tuple(failures),
        measurements={"products": products, "threads": counts, "largest_error_to_bound": worst},
    )


def choose_thread_counts(most: int) -> list[int]:
    """Return the thread counts to test, at most ``most``: 1 to 4, powers of two, and ``most``."""
    doubled = [2**power for power in range(most.bit_length())]
    return sorted({count for count in (*range(1, 5), *doubled, most) if count <= most})


def compile_kernel(kernel: Kernel, dtype: str) -> Any:
    """Compile a kernel's Theano function of (a, b) or (accumulator, a, b)."""
    a, b, out = (
        T.TensorType(dtype, (False,) * len(term))(name)
        for term, name in zip(
            kernel.subscripts.replace("->", ",").split(","), ("a", "b", "out"), strict=True
        )
    )
    operation = {"ger": T.outer, "batched_dot": T.batched_dot}.get(kernel.name, T.dot)
    if kernel.scales is None:
        return theano.function([a, b], operation(a, b))
    beta, alpha = (np.asarray(scale, dtype) for scale in kernel.scales)
    # Make the input mutable, so that the BLAS adds to the accumulator's own memory, in any layout.
    accumulator = theano.In(out, mutable=True, borrow=True)
    return theano.function([accumulator, a, b], beta * out + alpha * operation(a, b))


# Compute each reference once for all thread counts, because extended precision is slow on emulated
# processors.
@functools.cache
def compute_reference(kernel: Kernel, extents: tuple[int, ...], dtype: str) -> Reference:
    """Draw a kernel's operands; return them with the exact result and its error bound."""
    sizes = dict(zip("ijkb", (*extents, BATCH), strict=True))
    draw = np.random.RandomState(7).uniform
    a, b, out = (
        draw(-1, 1, [sizes[index] for index in term]).astype(dtype)
        for term in kernel.subscripts.replace("->", ",").split(",")
    )
    beta, alpha = kernel.scales or (0.0, 1.0)
    expected = alpha * accuracy.compute_exact(kernel.subscripts, a, b) + beta * out
    magnitude = accuracy.compute_exact(kernel.subscripts, abs(a), abs(b))
    magnitude = abs(alpha) * magnitude + abs(beta) * abs(out.astype(np.longdouble))
    # The number of terms, plus one rounding each for the two scales and the sum.
    count = accuracy.count_terms(kernel.subscripts, a, b) + 3
    bound = np.maximum(accuracy.compute_gamma(count, dtype) * magnitude, np.finfo(dtype).tiny)
    return Reference((a, b, out), expected, bound.astype(np.float64))


def compute_errors(
    kernel: Kernel, function: Any, extents: tuple[int, ...], dtype: str
) -> Iterator[tuple[str, float]]:
    """Yield (layouts, error) for each choice of the operands' layouts.

    The error is the largest error of an entry of the result, divided by its bound.
    """
    (a, b, out), expected, bound = compute_reference(kernel, extents, dtype)
    for layouts in choose_layouts(a.ndim, b.ndim, out.ndim):
        first, second, target = (
            accuracy.make_strided(values, *layout)
            for values, layout in zip((a, b, out), layouts, strict=True)
        )
        actual = function(target, first, second) if kernel.scales else function(first, second)
        error = float((abs((actual - expected).astype(np.float64)) / bound).max(initial=0))
        # Report NaN as an infinite error: comparisons with NaN are False, so max would skip it.
        yield str(layouts), np.inf if np.isnan(error) else error


def choose_layouts(*ndims: int) -> Iterator[tuple[Any, ...]]:
    """Yield tuples with a layout for each operand; each operand gets each of its layouts.

    From one tuple to the next, operand i advances by 2 i + 1 layouts. The number of layouts is a
    power of two, so a step by an odd number reaches all layouts.

    Args:
        ndims: the number of axes of each operand.
    """
    operands = [accuracy.list_layouts(ndim) for ndim in ndims]
    for turn in range(max(map(len, operands))):
        yield tuple(
            layouts[turn * (2 * i + 1) % len(layouts)] for i, layouts in enumerate(operands)
        )


def find_complex_failures() -> list[str]:
    """Return a failure for each wrong inner product of complex vectors.

    GNU's Fortran compiler returns complex values in registers, and Intel's through a hidden
    argument. SciPy expects GNU's convention, and gets wrong values from a BLAS with Intel's.
    """
    failures = []
    for prefix, dtype in (("c", "complex64"), ("z", "complex128")):
        draw = np.random.RandomState(11).uniform
        x, y = ((draw(-1, 1, 130) + 1j * draw(-1, 1, 130)).astype(dtype) for _ in range(2))
        unconjugated, conjugated = (accuracy.compute_exact("i,i->", v, y) for v in (x, x.conj()))
        # A complex product has twice the terms, and two more roundings (Higham, lemma 3.5).
        bound = accuracy.compute_gamma(2 * len(x) + 2, x.real.dtype) * float(
            (abs(x) * abs(y)).sum()
        )
        answers = {
            f"scipy's {prefix}dotu": (getattr(scipy.linalg.blas, f"{prefix}dotu"), unconjugated),
            f"scipy's {prefix}dotc": (getattr(scipy.linalg.blas, f"{prefix}dotc"), conjugated),
            f"numpy.dot of {dtype}": (np.dot, unconjugated),
            f"numpy.vdot of {dtype}": (np.vdot, conjugated),
        }
        for name, (function, expected) in answers.items():
            if not abs(function(x, y) - expected) <= bound:
                failures.append(f"{name} is wrong: {function(x, y)}, not {expected}")
    return failures
