"""C code that converts the operands of scalar ops to a type in which C computes right results.

C converts two operands to a common type. If that type is unsigned, a negative integer becomes a
large number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from theano.scalar import basic

if TYPE_CHECKING:
    from theano.gof import Variable
    from theano.scalar import Scalar


def convert_to_type(
    inputs: Sequence[Variable], names: Sequence[str], type: Scalar
) -> Sequence[str]:
    """Return C code that converts operands to a type, if this is the common type of the operands.

    Otherwise return the names unchanged: ``type`` is then the dtype of a reduction, and applies to
    the result only. Also return the names for float16 and complex types.

    Args:
        inputs: the operands.
        names: the C names of the operands.
        type: the type of the op's output.
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


def convert_to_integer_type(
    inputs: Sequence[Variable], names: Sequence[str], type: Scalar
) -> Sequence[str]:
    """Return C code that converts operands of a bitwise op to a type, if this is an integer type.

    Otherwise return the names unchanged, because C has no bitwise operations of floats. For
    example, the type of the result is float64 if the operands are int64 and uint64.

    Args:
        inputs: the operands.
        names: the C names of the operands.
        type: the type of the op's output.
    """
    return convert_to_type(inputs, names, type) if type in basic.discrete_types else names


def convert_for_comparison(inputs: Sequence[Variable], names: Sequence[str]) -> Sequence[str]:
    """Return C code that converts operands of a comparison to a type that holds all their values.

    Args:
        inputs: the operands.
        names: the C names of the operands.
    """
    (type,) = basic.upcast_out(*[operand.type for operand in inputs])
    if type in basic.float_types and all(
        operand.type in basic.discrete_types for operand in inputs
    ):
        # The operands are int64 and uint64. x86's long double holds all values of both types,
        # because its significand has 64 bits.
        return [f"((long double)({name}))" for name in names]
    return convert_to_type(inputs, names, type)
