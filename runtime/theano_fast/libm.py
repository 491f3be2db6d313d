"""The functions that amdlibm computes, samples of their arguments, and their errors by mpmath.

Errors are in units in the last place (ulp): the distance of neighbours in the result's type at
the exact result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from theano import scalar
from theano.scalar import basic_scipy

# In bits: what mpmath rounds off is nothing to a float64's 53.
PRECISION = 150


@dataclass(frozen=True)
class Function:
    """A function of the C library: Theano's scalar op, the exact one, a range per argument."""

    name: str
    op: Any
    exact: Callable[..., Any]
    ranges: tuple[tuple[float, float], ...]


FUNCTIONS = (
    Function("acos", scalar.arccos, mpmath.acos, ((-1, 1),)),
    Function("acosh", scalar.arccosh, mpmath.acosh, ((1, 1e30),)),
    Function("asin", scalar.arcsin, mpmath.asin, ((-1, 1),)),
    Function("asinh", scalar.arcsinh, mpmath.asinh, ((-1e30, 1e30),)),
    Function("atan", scalar.arctan, mpmath.atan, ((-1e30, 1e30),)),
    Function("atan2", scalar.arctan2, mpmath.atan2, ((-100, 100), (-100, 100))),
    Function("atanh", scalar.arctanh, mpmath.atanh, ((-0.9999, 0.9999),)),
    Function("cos", scalar.cos, mpmath.cos, ((-1e4, 1e4),)),
    Function("cosh", scalar.cosh, mpmath.cosh, ((-700, 700),)),
    Function("erf", basic_scipy.erf, mpmath.erf, ((-6, 6),)),
    Function("erfc", basic_scipy.erfc, mpmath.erfc, ((-6, 26),)),
    Function("exp", scalar.exp, mpmath.exp, ((-700, 700),)),
    Function("exp2", scalar.exp2, lambda x: mpmath.power(2, x), ((-1000, 1000),)),
    Function("expm1", scalar.expm1, mpmath.expm1, ((-700, 700),)),
    Function("log", scalar.log, mpmath.log, ((1e-30, 1e30),)),
    Function("log10", scalar.log10, mpmath.log10, ((1e-30, 1e30),)),
    Function("log1p", scalar.log1p, mpmath.log1p, ((-0.9999, 1e30),)),
    Function("log2", scalar.log2, lambda x: mpmath.log(x, 2), ((1e-30, 1e30),)),
    Function("pow", scalar.pow, mpmath.power, ((1e-3, 1e3), (-100, 100))),
    Function("sin", scalar.sin, mpmath.sin, ((-1e4, 1e4),)),
    Function("sinh", scalar.sinh, mpmath.sinh, ((-700, 700),)),
    Function("tan", scalar.tan, mpmath.tan, ((-1e4, 1e4),)),
    Function("tanh", scalar.tanh, mpmath.tanh, ((-30, 30),)),
)


def sample(function: Function, count: int, dtype: str) -> list[Any]:
    """Return an array of count values for each of the function's arguments.

    They are uniform over its range, uniform in [-2, 2], where many functions vanish or bend, and
    of magnitudes from 1e-30 to 1e30, a third of each, mirrored and clipped into the range.
    """
    draw = np.random.RandomState(5).uniform
    arguments = []
    for low, high in function.ranges:
        wide = draw(low, high, count)
        near = draw(-2, 2, count)
        magnitudes = np.copysign(10 ** draw(-30, 30, count), near)
        chosen = np.choose(np.arange(count) % 3, [wide, near, magnitudes])
        arguments.append(np.clip(np.abs(chosen) if low > 0 else chosen, low, high).astype(dtype))
    return arguments


def errors(function: Function, got: Any, arguments: Sequence[Any]) -> Any:
    """Return the errors in ulp of the results got, 0 where a type's normal range is left."""
    limits = np.finfo(got.dtype)
    found = np.zeros(len(got))
    with mpmath.workprec(PRECISION):
        for i, (result, *values) in enumerate(zip(got, *arguments, strict=True)):
            exact = function.exact(*(mpmath.mpf(float(value)) for value in values))
            if limits.tiny <= abs(exact) <= limits.max:
                ulp = float(np.spacing(got.dtype.type(abs(exact))))
                found[i] = abs(mpmath.mpf(float(result)) - exact) / ulp
    return found
