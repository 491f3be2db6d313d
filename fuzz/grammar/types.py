"""Compute the types of results by Theano's rules; define the frequencies of types."""

from __future__ import annotations

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
DISCRETE = ("bool", *INTEGERS)
FLOATS = ("float16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = DISCRETE + FLOATS
ALL = REAL + COMPLEX
# The relative frequencies of the types of inputs.
WEIGHTS = {
    "float64": 12,
    "float32": 5,
    "int64": 4,
    "int8": 4,
    "uint8": 3,
    "int32": 2,
    "bool": 2,
    "int16": 1,
    "uint16": 1,
    "uint32": 1,
    "uint64": 1,
    "float16": 1,
    "complex64": 1,
    "complex128": 1,
}


def count_bits(dtype: str) -> int:
    """Return the number of bits of an element of a type, such as 64 for "float64"."""
    return 8 if dtype == "bool" else int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz"))


def upcast(*dtypes: str) -> str:
    """Return the type to which Theano converts operands of these types."""
    common = dtypes[0]
    for dtype in dtypes[1:]:
        common = _upcast(common, dtype)
    return common


def _upcast(one: str, other: str) -> str:
    if other in (one, "bool"):
        return one
    if one == "bool":
        return other
    if one in COMPLEX or other in COMPLEX:
        parts = [_get_part_dtype(dtype) for dtype in (one, other)]
        return "complex64" if upcast(*parts) in ("float16", "float32") else "complex128"
    if one in FLOATS and other in FLOATS:
        return one if count_bits(one) > count_bits(other) else other
    if one in FLOATS or other in FLOATS:
        float_dtype, integer_dtype = (one, other) if one in FLOATS else (other, one)
        needed_bits = {8: 16, 16: 32, 32: 64, 64: 64}[count_bits(integer_dtype)]
        return f"float{max(count_bits(float_dtype), needed_bits)}"
    if (one in SIGNED) == (other in SIGNED):
        return one if count_bits(one) > count_bits(other) else other
    signed, unsigned = (one, other) if one in SIGNED else (other, one)
    if count_bits(signed) > count_bits(unsigned):
        return signed
    return f"int{2 * count_bits(unsigned)}" if count_bits(unsigned) < 64 else "float64"


def _get_part_dtype(dtype: str) -> str:
    """Return the type of a complex type's real part; return another type unchanged."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def compute_float_type(dtype: str) -> str:
    """Return the result type of a function with float results, such as exp, for an operand type."""
    if dtype in FLOATS + COMPLEX:
        return dtype
    return "float32" if count_bits(dtype) <= 16 else "float64"
