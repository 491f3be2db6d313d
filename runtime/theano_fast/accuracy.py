"""Compute error bounds of rounded matrix products, and make operands in every memory layout.

Source: N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, SIAM 2002,
chapter 3: the error of a product's entries is at most gamma_n |A| |B| (equation 3.13). The bound
holds for every order of summation, with or without fused multiply-add. So it holds for any BLAS
with conventional multiplication, on any number of threads.
"""

import math
from itertools import product
from typing import Any, Literal

import numpy as np

STEPS = (1, -1, 2, -3)


def gamma(n: int, dtype: Any) -> float:
    """Return ``n u / (1 - n u)`` (Higham, lemma 3.1), u the unit roundoff of a real dtype."""
    unit = float(np.finfo(dtype).eps) / 2
    return n * unit / (1 - n * unit)


def count_terms(subscripts: str, a: Any, b: Any) -> int:
    """Return the number of products that einsum adds for an entry of its result, at least 1."""
    operands, result = subscripts.split("->")
    extents = dict(zip(operands.replace(",", ""), a.shape + b.shape, strict=True))
    return max(1, math.prod(int(extents[index]) for index in extents if index not in result))


def compute_exact(subscripts: str, a: Any, b: Any) -> Any:
    """Return the product in extended precision, computed without BLAS.

    numpy.einsum uses BLAS only with optimize=True, and never for long double.
    """
    wide = np.clongdouble if np.iscomplexobj(a) else np.longdouble
    return np.einsum(subscripts, a.astype(wide), b.astype(wide), optimize=False)


def make_strided(values: Any, steps: tuple[int, ...], order: Literal["C", "F"]) -> Any:
    """Return an array equal to values, with ``steps`` between the elements of each axis.

    The gaps contain NaN, so that a routine which reads them computes NaN.
    """
    shape = [extent * abs(step) for extent, step in zip(values.shape, steps, strict=True)]
    base = np.full(shape, np.nan, values.dtype, order)
    view = base[tuple(slice(None, None, step) for step in steps)]
    view[...] = values
    return view


def list_layouts(ndim: int) -> list[tuple[tuple[int, ...], Literal["C", "F"]]]:
    """Return (steps, order) for arrays with ndim axes: contiguous, with gaps, reversed.

    Batch axes, which come before the last two, have fewer steps, because BLAS does not see them.
    """
    steps = [(1, -2)] * (ndim - 2) + [STEPS] * min(ndim, 2)
    orders: tuple[Literal["C", "F"], ...] = ("C", "F") if ndim > 1 else ("C",)
    return list(product(product(*steps), orders))
