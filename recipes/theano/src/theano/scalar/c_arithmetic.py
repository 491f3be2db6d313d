"""C code of quotients, remainders and powers, with the results of NumPy.

Quotients and remainders are rounded towards minus infinity; C rounds quotients of integers towards
zero. No code computes the negative of an integer: the least integer of a type has none.
"""

from __future__ import annotations


def divide_integers(x: str, y: str, z: str, by_zero: str) -> str:
    """Return C code that computes the floor of the quotient of two integers.

    Args:
        x: the C name of the dividend.
        y: the C name of the divisor.
        z: the C name of the result.
        by_zero: C code that runs if the divisor is 0.
    """
    return f"""
        if ({y} == 0) {{
            {by_zero};
        }} else if ({y} < 0 && {y} + 1 == 0) {{
            {z} = 0 - {x};
        }} else {{
            {z} = ({x} / {y}) - (
                THEANO_MACRO_MOD({x}, {y}) != 0 && ({x} < 0) != ({y} < 0));
        }}
    """


def find_remainder(x: str, y: str, z: str, by_zero: str) -> str:
    """Return C code that computes the remainder of two integers, with the sign of the divisor.

    Args:
        x: the C name of the dividend.
        y: the C name of the divisor.
        z: the C name of the result.
        by_zero: C code that runs if the divisor is 0.
    """
    rest = f"THEANO_MACRO_MOD({x}, {y})"
    return f"""
        if ({y} == 0) {{
            {by_zero};
        }} else if ({y} < 0 && {y} + 1 == 0) {{
            {z} = 0;
        }} else {{
            {z} = {rest} + (
                {rest} != 0 && ({x} < 0) != ({y} < 0) ? {y} : 0);
        }}
    """


def divide_floats(x: str, y: str, z: str, dtype: str) -> str:
    """Return C code that computes the floor of the quotient of two floats.

    Like NumPy, do not compute floor(x / y): the quotient is rounded.

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
            {ctype} rest = fmod{suffix}({x}, {y});
            {ctype} quotient = ({x} - rest) / {y};
            if (rest != 0 && ({y} < 0) != (rest < 0))
                quotient -= 1;
            rest = floor{suffix}(quotient);
            {z} = rest + (quotient - rest > 0.5);
        }}
    """


def raise_integer(x: str, y: str, z: str, power_type: str) -> str:
    """Return C code that computes an integer power of an integer; overflow wraps.

    A double, which pow returns, does not have all digits of an integer.

    Args:
        x: the C name of the base.
        y: the C name of the power.
        z: the C name of the result.
        power_type: the C type of integers of 64 bits that holds the power.
    """
    return f"""
        {{
            npy_uint64 base = {x}, power = 1;
            {power_type} left = {y};
            if (left < 0) {{
                {z} = pow({x}, {y});
            }} else {{
                for (; left != 0; left >>= 1, base *= base) {{
                    if (left & 1) power *= base;
                }}
                {z} = power;
            }}
        }}
    """
