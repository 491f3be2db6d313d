"""Checks and casts of operands, for rewrites that must compute in the type of a result.

Sums, differences and products of integers are computed modulo 2**bits, so the type of each
intermediate result matters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from theano.scalar import upcast
from theano.tensor import basic

if TYPE_CHECKING:
    from theano.gof import Variable

DISCRETE = frozenset(basic.discrete_dtypes)


def may_wrap(variables: Iterable[Variable], out: Variable | None = None) -> bool:
    """Return whether any variable is an integer of another type than ``out``.

    Such an integer wraps at other values than an integer of the type of ``out``. Without ``out``,
    return whether any variable is an integer.
    """
    for variable in variables:
        dtype = variable.type.dtype
        if dtype in DISCRETE and (out is None or dtype != out.type.dtype):
            return True
    return False


def cast_all(variables: Iterable[Variable], out: Variable) -> list[Variable]:
    """Cast variables to the dtype of ``out``."""
    return [basic.cast(variable, out.dtype) for variable in variables]


def cast_operands(variables: list[Variable], out: Variable) -> list[Variable]:
    """Cast operands to the dtype of ``out``, unless this is their common dtype."""
    if upcast(*[variable.dtype for variable in variables]) == out.dtype:
        return variables
    return cast_all(variables, out)
