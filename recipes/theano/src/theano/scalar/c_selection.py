"""C code of scalar ops that select one of several values: maximum, minimum, clip and sgn.

The conditionals are in sequence: g++ does not vectorize nested conditionals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from theano.scalar import basic
from theano.scalar.c_operands import convert_for_comparison, convert_to_type

if TYPE_CHECKING:
    from theano.gof import Apply


def generate_extremum(node: Apply, inputs: Sequence[str], z: str, sign: str) -> str:
    """Return C code that computes the maximum or the minimum of two operands.

    The result is nan if an operand is nan.

    Args:
        node: the node of the op. Its operands are not complex.
        inputs: the C names of the operands.
        z: the C name of the result.
        sign: ">" for the maximum, "<" for the minimum.
    """
    type = node.outputs[0].type
    x, y = convert_to_type(node.inputs, inputs, type)
    if type in basic.discrete_types:
        # Compute in the integer type: nan is a double, which does not hold all int64 values.
        return f"{z} = {y} {sign} {x} ? {y} : {x};"
    if z in (x, y):
        # In a reduction, this form has the shortest dependency chain.
        return f'{z} = (({y}){sign}({x})? ({y}): (({x}){sign}=({y})? ({x}): nan("")));'
    return (
        f'{{ {type.dtype_specs()[1]} other = {x} {sign}= {y} ? {x} : nan("");'
        f" {z} = {y} {sign} {x} ? {y} : other; }}"
    )


def generate_clip(node: Apply, inputs: Sequence[str], z: str) -> str:
    """Return C code that limits an operand to the range between two bounds.

    An operand below the lower bound becomes the lower bound, even if it exceeds the upper bound.

    Args:
        node: the node of the op. Its inputs are the operand, the lower bound and the upper bound.
        inputs: the C names of the inputs.
        z: the C name of the result.
    """
    x, lower, upper = inputs
    below = " < ".join(convert_for_comparison(node.inputs[:2], (x, lower)))
    above = " > ".join(convert_for_comparison(node.inputs[::2], (x, upper)))
    type = node.outputs[0].type
    x, lower, upper = convert_to_type(node.inputs, inputs, type)
    return (
        f"{{ {type.dtype_specs()[1]} clipped = {above} ? {upper} : {x};"
        f" {z} = {below} ? {lower} : clipped; }}"
    )


def generate_sign(node: Apply, x: str, z: str) -> str:
    """Return C code that computes the sign of a real float: 1, 0, -1 or nan. The sign of -0 is 0.

    Args:
        node: the node of the op.
        x: the C name of the operand.
        z: the C name of the result.
    """
    ctype = node.outputs[0].type.dtype_specs()[1]
    return (
        f"{{ {ctype} sign = {x} == 0 ? 0 : {x}; sign = {x} > 0 ? 1 : sign;"
        f" {z} = {x} < 0 ? -1 : sign; }}"
    )
