"""BLAS results through Theano and SciPy, against extended precision and a proven bound.

Every routine, type, memory order, stride, zero extent and thread count: silent wrong results,
as of two OpenMP run times in one process (Theano's issue 6568), are the worst a BLAS can do.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg.blas
import theano
import theano.tensor as T

from theano_fast import accuracy, blas, threads
from theano_fast.checks.result import Options, Result

# (i, j, k); the large ones are beyond the size from which OpenBLAS and MKL use threads.
EXTENTS = (
    (1, 1, 1), (2, 3, 5), (17, 33, 8), (64, 16, 65), (0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0),
    (257, 129, 130),
)  # fmt: skip
BATCH = 3
DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Kernel:
    """A product under test: einsum's subscripts; scales (beta, alpha) where it accumulates."""

    name: str
    subscripts: str
    scales: tuple[float, float] | None = None


KERNELS = (
    Kernel("dot22", "ij,jk->ik"),
    Kernel("gemm", "ij,jk->ik", (-0.5, 2.0)),
    Kernel("gemv", "ij,j->i", (-0.5, 2.0)),
    Kernel("ger", "i,k->ik", (1.0, 2.0)),
    Kernel("batched_dot", "bij,bjk->bik"),
)


def run(options: Options) -> Result:
    """Run every kernel in every type on 1..N threads, and the complex inner products."""
    compiled = {(k, d): compile_kernel(k, d) for k, d in itertools.product(KERNELS, DTYPES)}
    library = next(b for b in blas.loaded() if b.family == options.stack.axes["blas"])
    counts = thread_counts(threads.available())
    failures: list[str] = []
    products, worst = 0, dict.fromkeys(DTYPES, 0.0)
    for count in counts:
        blas.set_threads(library, count)
        for (kernel, dtype), function in compiled.items():
            for extents in EXTENTS:
                errors = [*relative_errors(kernel, function, extents, dtype)]
                products += len(errors)
                layout, error = max(errors, key=lambda pair: pair[1])
                worst[dtype] = max(worst[dtype], error)
                if not error <= 1:
                    failures.append(
                        f"{kernel.name} {dtype} {extents} on {count} threads, {layout}:"
                        f" error {error:.3g} times its bound"
                    )
    failures += complex_failures()
    return Result(
        summary=f"{products} products on {counts} threads within "
        + ", ".join(f"{worst[dtype]:.2f} ({dtype})" for dtype in DTYPES)
        + " of Higham's bound",
        failures=tuple(failures),
        measurements={"products": products, "threads": counts, "largest_error_to_bound": worst},
    )


def thread_counts(most: int) -> list[int]:
    """Return the thread counts to run: 1 to 4, powers of two, and most."""
    doubled = [2**power for power in range(most.bit_length())]
    return sorted({count for count in (*range(1, 5), *doubled, most) if count <= most})


def compile_kernel(kernel: Kernel, dtype: str) -> Any:
    """Compile a kernel's Theano function of (left, right) or (accumulator, left, right)."""
    left, right, out = (
        T.TensorType(dtype, (False,) * len(term))(name)
        for term, name in zip(
            kernel.subscripts.replace("->", ",").split(","), ("left", "right", "out"), strict=True
        )
    )
    operation = {"ger": T.outer, "batched_dot": T.batched_dot}.get(kernel.name, T.dot)
    if kernel.scales is None:
        return theano.function([left, right], operation(left, right))
    beta, alpha = (np.asarray(scale, dtype) for scale in kernel.scales)
    # Mutable, so that the BLAS accumulates in the array given, whatever its layout.
    accumulator = theano.In(out, mutable=True, borrow=True)
    return theano.function([accumulator, left, right], beta * out + alpha * operation(left, right))


def relative_errors(
    kernel: Kernel, function: Any, extents: tuple[int, ...], dtype: str
) -> Iterator[tuple[str, float]]:
    """Yield (layout, largest error in units of its bound) over the operands' layouts."""
    sizes = dict(zip("ijkb", (*extents, BATCH), strict=True))
    draw = np.random.RandomState(7).uniform
    left, right, out = (
        draw(-1, 1, [sizes[index] for index in term]).astype(dtype)
        for term in kernel.subscripts.replace("->", ",").split(",")
    )
    beta, alpha = kernel.scales or (0.0, 1.0)
    expected = alpha * accuracy.exact(kernel.subscripts, left, right) + beta * out
    magnitude = accuracy.exact(kernel.subscripts, abs(left), abs(right))
    magnitude = abs(alpha) * magnitude + abs(beta) * abs(out.astype(np.longdouble))
    # The product's terms, and a rounding each for the two scales and the sum.
    count = accuracy.terms(kernel.subscripts, left, right) + 3
    bound = np.maximum(accuracy.gamma(count, dtype) * magnitude, np.finfo(dtype).tiny)
    for chosen in layout_choices(left.ndim, right.ndim, out.ndim):
        first, second, target = (
            accuracy.strided(values, *layout)
            for values, layout in zip((left, right, out), chosen, strict=True)
        )
        got = function(target, first, second) if kernel.scales else function(first, second)
        # A NaN counts as an infinite error; max() alone would lose it.
        error = np.nan_to_num(abs(got - expected) / bound, nan=np.inf)
        yield str(chosen), float(error.max(initial=0))


def layout_choices(*ndims: int) -> Iterator[tuple[Any, ...]]:
    """Yield a layout for each operand, so that each is seen in every one of its layouts.

    Their numbers are powers of two, so that odd strides through them meet them all.
    """
    every = [accuracy.layouts(ndim) for ndim in ndims]
    for turn in range(max(len(choices) for choices in every)):
        yield tuple(choices[turn * (2 * i + 1) % len(choices)] for i, choices in enumerate(every))


def complex_failures() -> list[str]:
    """Return which complex inner products are wrong.

    How Fortran functions return complex values differs between compilers (GNU's in registers,
    Intel's through a hidden argument): the classic mismatch of a BLAS with SciPy.
    """
    failures = []
    for prefix, dtype in (("c", "complex64"), ("z", "complex128")):
        draw = np.random.RandomState(11).uniform
        x, y = ((draw(-1, 1, 130) + 1j * draw(-1, 1, 130)).astype(dtype) for _ in range(2))
        unconjugated, conjugated = (accuracy.exact("i,i->", v, y) for v in (x, x.conj()))
        # A complex product has twice the terms, and two more roundings (Higham, lemma 3.5).
        bound = accuracy.gamma(2 * len(x) + 2, x.real.dtype) * float((abs(x) * abs(y)).sum())
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
