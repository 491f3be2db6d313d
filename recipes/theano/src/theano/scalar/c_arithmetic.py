"""C code of quotients, remainders and powers, with the results of NumPy.

Quotients and remainders are rounded towards minus infinity; C rounds quotients of integers towards
zero. No code computes the negative of an integer: the least integer of a type has none.
"""

from __future__ import annotations


def handle_special_divisors(y: str, by_zero: str, by_minus_one: str, otherwise: str) -> str:
    """Return C code that runs one of three pieces of C code, by the value of an integer divisor.

    Args:
        y: the C name of the divisor, of a signed or an unsigned type.
        by_zero: runs if the divisor is 0.
        by_minus_one: runs if the divisor is -1; C does not divide the least integer by -1.
        otherwise: runs for all other divisors.
    """
    return f"""
        if ({y} == 0) {{
            {by_zero};
        }} else if ({y} < 0 && {y} + 1 == 0) {{
            {by_minus_one};
        }} else {{
            {otherwise};
        }}
    """


def divide_integers(x: str, y: str, z: str, by_zero: str) -> str:
    """Return C code that computes the floor of the quotient of two integers.

    Args:
        x: the C name of the dividend.
        y: the C name of the divisor.
        z: the C name of the result.
        by_zero: C code that runs if the divisor is 0.
    """
    return handle_special_divisors(
        y,
        by_zero,
        f"{z} = 0 - {x}",
        f"{z} = ({x} / {y}) - (THEANO_MACRO_MOD({x}, {y}) != 0 && ({x} < 0) != ({y} < 0))",
    )


def find_remainder(x: str, y: str, z: str, by_zero: str) -> str:
    """Return C code that computes the remainder of two integers, with the sign of the divisor.

    Args:
        x: the C name of the dividend.
        y: the C name of the divisor.
        z: the C name of the result.
        by_zero: C code that runs if the divisor is 0.
    """
    remainder = f"THEANO_MACRO_MOD({x}, {y})"
    return handle_special_divisors(
        y,
        by_zero,
        f"{z} = 0",
        f"{z} = {remainder} + ({remainder} != 0 && ({x} < 0) != ({y} < 0) ? {y} : 0)",
    )


def divide_floats(x: str, y: str, z: str, dtype: str) -> str:
    """Return C code that computes the floor of the quotient of two floats.

    As in NumPy, the code does not compute floor(x / y): rounding x / y can change its floor.

    Args:
        x: the C name of the dividend.
        y: the C name of the divisor.
        z: the C name of the result.
        dtype: float32 or float64.
    """
    ctype, suffix = {"float32": ("float", "f"), "float64": ("double", "")}[dtype]
    return f"""
        if ({y} == 0) {{
            {z} = {x} / {y};
        }} else {{
            {ctype} remainder = fmod{suffix}({x}, {y});
            {ctype} quotient = ({x} - remainder) / {y};
            if (remainder != 0 && ({y} < 0) != (remainder < 0))
                quotient -= 1;
            {ctype} floored = floor{suffix}(quotient);
            {z} = floored + (quotient - floored > 0.5);
        }}
    """


def raise_to_power(x: str, y: str, z: str, power_type: str) -> str:
    """Return C code that computes an integer power of an integer; overflow wraps.

    pow returns a double, which has fewer digits than a 64-bit integer.

    Args:
        x: the C name of the base.
        y: the C name of the exponent.
        z: the C name of the result.
        power_type: the 64-bit integer type in C that holds the exponent.
    """
    return f"""
        {{
            npy_uint64 base = {x}, power = 1;
            {power_type} exponent = {y};
            if (exponent < 0) {{
                {z} = pow({x}, {y});
            }} else {{
                for (; exponent != 0; exponent >>= 1, base *= base) {{
                    if (exponent & 1) power *= base;
                }}
                {z} = power;
            }}
        }}
    """
