"""C code of the operands of scalar ops, converted to a type in which C computes right results.

C converts operands of two types to a common type. If one operand is unsigned, a negative integer
may become a large number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from theano.scalar import basic

if TYPE_CHECKING:
    from theano.gof import Variable
    from theano.scalar import Scalar


def in_type(inputs: Sequence[Variable], names: Sequence[str], type: Scalar) -> Sequence[str]:
    """Return C code of operands, converted to a type that holds all of their values.

    If ``type`` is not the common type of the operands, it is the dtype of a reduction and applies
    to the result only. Then, and for float16 and complex types, return the names.
    """
    if (
        type.dtype[:7] in ("float16", "complex")
        or basic.upcast_out(*[operand.type for operand in inputs])[0] != type
    ):
        return names
    return [
        name if operand.type == type else f"(({type.dtype_specs()[1]})({name}))"
        for operand, name in zip(inputs, names, strict=False)
    ]


def comparable(inputs: Sequence[Variable], names: Sequence[str]) -> Sequence[str]:
    """Return C code of operands, converted to a type that holds all values of both types."""
    (type,) = basic.upcast_out(*[operand.type for operand in inputs])
    if type in basic.float_types and all(
        operand.type in basic.discrete_types for operand in inputs
    ):
        # These types are int64 and uint64. x86's long double has 64 bits for the digits.
        return [f"((long double)({name}))" for name in names]
    return in_type(inputs, names, type)
