"""Compute error bounds of rounded matrix products, and make operands in every memory layout.

Source: N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, SIAM 2002,
chapter 3. The error of each entry of a product A B is at most the same entry of gamma_n |A| |B|,
where n is the number of terms of an entry (equation 3.13). The bound holds for every order of
summation, with or without fused multiply-add. So it holds for any BLAS that adds up all n products
(not for Strassen's algorithm), on any number of threads.
"""

import math
from itertools import product
from typing import Any, Literal

import numpy as np

# The steps of make_strided: contiguous, reversed, with gaps, reversed with gaps.
STEPS = (1, -1, 2, -3)


def compute_gamma(n: int, dtype: Any) -> float:
    """Return ``n u / (1 - n u)`` (Higham, lemma 3.1); u is the unit roundoff of a real dtype."""
    unit = float(np.finfo(dtype).eps) / 2
    return n * unit / (1 - n * unit)


def count_terms(subscripts: str, a: Any, b: Any) -> int:
    """Return the number of products that einsum adds up for each entry of its result, at least 1.

    For example, this is the extent of j for the subscripts ``ij,jk->ik``.
    """
    operands, result = subscripts.split("->")
    extents = dict(zip(operands.replace(",", ""), a.shape + b.shape, strict=True))
    return max(1, math.prod(int(extents[index]) for index in extents if index not in result))


def compute_exact(subscripts: str, a: Any, b: Any) -> Any:
    """Return ``einsum(subscripts, a, b)`` in long double precision, computed without BLAS.

    numpy.einsum uses BLAS only with optimize=True, and never for long double.
    """
    wide = np.clongdouble if np.iscomplexobj(a) else np.longdouble
    return np.einsum(subscripts, a.astype(wide), b.astype(wide), optimize=False)


def make_strided(values: Any, steps: tuple[int, ...], order: Literal["C", "F"]) -> Any:
    """Return an array equal to values, with the given memory layout.

    The gaps between elements contain NaN, so that a routine that reads a gap computes NaN.

    Args:
        values: the array to copy.
        steps: for each axis, the number of elements in memory from one element to the next.
        order: "C" or "F", NumPy's memory order.
    """
    shape = [extent * abs(step) for extent, step in zip(values.shape, steps, strict=True)]
    base = np.full(shape, np.nan, values.dtype, order)
    view = base[tuple(slice(None, None, step) for step in steps)]
    view[...] = values
    return view


def list_layouts(ndim: int) -> list[tuple[tuple[int, ...], Literal["C", "F"]]]:
    """Return the layouts to test for arrays with ndim axes: make_strided's (steps, order).

    The axes before the last two are batch axes. They have fewer steps, because BLAS does not see
    them.
    """
    steps = [(1, -2)] * (ndim - 2) + [STEPS] * min(ndim, 2)
    orders: tuple[Literal["C", "F"], ...] = ("C", "F") if ndim > 1 else ("C",)
    return list(product(product(*steps), orders))
