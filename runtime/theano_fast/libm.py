"""Sample arguments of amdlibm's functions, and compute the errors of results.

Errors are in units in the last place (ulp): the distance between neighbouring numbers of the
result's type at the exact result. mpmath computes the exact results of ordinary arguments. Results
of special arguments, such as pow(0, 0), are conventions: the C library's long double functions
compute them.
"""

import ctypes
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
from theano import scalar
from theano.scalar import basic_scipy

# The precision of mpmath in bits; a float64 has 53.
PRECISION = 150


@dataclass(frozen=True)
class Function:
    """A function of the C library.

    ``op`` is Theano's scalar op, ``exact`` is mpmath's function, and ``ranges`` has the lowest and
    highest ordinary value of each argument.
    """

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
    Function("cos", scalar.cos, mpmath.cos, ((-1e30, 1e30),)),
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
    Function("sin", scalar.sin, mpmath.sin, ((-1e30, 1e30),)),
    Function("sinh", scalar.sinh, mpmath.sinh, ((-700, 700),)),
    Function("tan", scalar.tan, mpmath.tan, ((-1e30, 1e30),)),
    Function("tanh", scalar.tanh, mpmath.tanh, ((-30, 30),)),
)


def sample(function: Function, count: int, dtype: str) -> list[Any]:
    """Return an array of count values for each of the function's arguments.

    One third is uniform over the argument's range. One third is uniform in [-2, 2], where many
    functions have zeros. One third has magnitudes from 1e-30 to 1e30. If the range is positive,
    take the absolute values. Then clip all values to the range.
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


def list_special(function: Function, dtype: str) -> list[Any]:
    """Return an array for each argument: all combinations of special and a few ordinary values.

    The special values are zeros, infinities, NaN, subnormals and the largest numbers.
    """
    limits = np.finfo(dtype)
    signless = [0, 0.5, 1, 2, 3, 1e22, np.inf, limits.max, limits.tiny, limits.tiny / 2]
    signless.append(limits.smallest_subnormal)
    values = np.array([np.nan, *signless, *(-value for value in map(limits.dtype.type, signless))])
    combinations = itertools.product(values.astype(dtype), repeat=len(function.ranges))
    return [np.array(column) for column in zip(*combinations, strict=True)]


def compute_exact(function: Function, arguments: Sequence[Any]) -> Any:
    """Compute the results of ordinary arguments with mpmath; return them as long doubles."""
    with mpmath.workprec(PRECISION):
        rows = [map(mpmath.mpf, map(float, row)) for row in zip(*arguments, strict=True)]
        return np.array([_to_longdouble(function.exact(*row)) for row in rows])


def compute_conventional(function: Function, arguments: Sequence[Any]) -> Any:
    """Return the C library's results of special arguments as long doubles.

    ctypes converts each result to a Python float, which rounds the result to double precision.
    """
    library = ctypes.CDLL("libm.so.6")
    c_function = library[function.name + "l"]
    c_function.restype = ctypes.c_longdouble
    c_function.argtypes = [ctypes.c_longdouble] * len(arguments)
    rows = zip(*arguments, strict=True)
    return np.array([c_function(*map(float, row)) for row in rows], dtype=np.longdouble)


def compute_errors(computed: Any, expected: Any) -> Any:
    """Return the errors of results in ulp.

    A result is special if the exact or the computed result is infinite or NaN, or if both are zero.
    The error of a special result is 0 if both are equal, including the sign of a zero, otherwise
    infinite.
    """
    limits = np.finfo(computed.dtype)
    with np.errstate(all="ignore"):
        rounded = expected.astype(computed.dtype)
        ulp = np.spacing(np.maximum(np.abs(rounded), limits.tiny)).astype(np.longdouble)
        distances = np.abs(computed.astype(np.longdouble) - expected) / ulp
    same = (computed == rounded) & (np.signbit(computed) == np.signbit(rounded))
    same |= np.isnan(computed) & np.isnan(rounded)
    special_results = (
        ~np.isfinite(computed) | ~np.isfinite(rounded) | ((computed == 0) & (rounded == 0))
    )
    return np.where(special_results, np.where(same, 0, np.inf), distances).astype("float64")


def _to_longdouble(value: Any) -> Any:
    """Convert a finite mpf to a long double."""
    mantissa, exponent = mpmath.frexp(value)
    high = float(mantissa)
    return np.ldexp(np.longdouble(high) + np.longdouble(float(mantissa - high)), exponent)
