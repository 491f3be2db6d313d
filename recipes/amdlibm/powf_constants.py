"""Compute the constants of src/powf.c with mpmath, and print them.

The first comment of src/powf.c explains the algorithm and the variables x, m, e, c, r, n and f.

``fit`` fits a polynomial by least squares at Chebyshev nodes, which nearly minimizes its greatest error.
It rounds the coefficients to floats one after another. After each rounding, it fits the remaining
coefficients again.
"""

import struct

from mpmath import cos, expm1, frexp, ldexp, linspace, log, log1p, mp, mpf, nint, pi
from mpmath import lu_solve, matrix

mp.prec = 200
# The interval of m, [FIRST, 2 FIRST), is divided into 8 parts. Part i has the reciprocal RECIPROCALS[i].
# The edges of the parts are 1/16 apart below 1, and 1/8 apart above 1. Only for few values of FIRST can
# reciprocals of 5 bits have |r| < 2^-4 at all edges. With 5 bits, r needs at most 24 bits and is exact.
FIRST = 1 - mpf(4.6875) / 16
RECIPROCALS = (1.375, 1.25, 1.1875, 1.0625, 1, 0.90625, 0.8125, 0.75)
STEP = log(2) / 8
# |e log 2 - log c| is below 89, where each multiple of GRID is a float.
GRID = mpf(2) ** -17
NODES = 120


def main():
    """Print the constants as C macros, and the polynomials' errors as a comment."""
    edges = [FIRST + mpf(i) / 16 for i in range(5)]
    edges += [2 * FIRST - mpf(i) / 8 for i in (3, 2, 1, 0)]
    max_r = max(abs(c * x - 1) for i, c in enumerate(RECIPROCALS) for x in edges[i : i + 2])
    logs = [-log(c) for c in RECIPROCALS]
    roots = [mpf(2) ** (mpf(j) / 8) for j in range(8)]
    p, p_error = fit(lambda r: -2 * (log1p(r) - r + r**2 / 2) / r**3, lambda r: r**2 / 2, 4, max_r)
    q, q_error = fit(lambda f: (expm1(f) - f) / f**2, lambda f: f**2, 2, STEP / 2)
    define("FIRST", FIRST)
    define("RECIPROCALS", *RECIPROCALS)
    define("LOGS_HIGH", *map(round_to_grid, logs))
    define("LOGS_LOW", *(exact - round_to_grid(exact) for exact in logs))
    # The code multiplies these by 2^23 e.
    define("LN2_HIGH", ldexp(round_to_grid(log(2)), -23))
    define("LN2_LOW", ldexp(log(2) - round_to_grid(log(2)), -23))
    for i, value in enumerate(p):
        define(f"P{i}", value)
    define("STEP_HIGH", STEP)
    define("STEP_LOW", STEP - rounded(STEP))
    # The code adds n 2^20 to the bits of a root. This adds n >> 3 to the exponent, and (n & 7) 2^20 to
    # the mantissa. Subtract (n & 7) 2^20 here.
    define("ROOTS", *(subtract_from_bits(rounded(exact), j) for j, exact in enumerate(roots)))
    define("ROOTS_LOW", *(exact / rounded(exact) - 1 for exact in roots))
    for i, value in enumerate(q):
        define(f"Q{i}", value)
    print(f"/* |r| <= {float(max_r):.5f}; errors 2^{p_error:.2f} r, 2^{q_error:.2f} */")


def fit(function, weight, degree, max_r, digits=24):
    """Return the coefficients of a polynomial, and log2 of its greatest weighted error.

    The polynomial of this degree approximates the function on [-max_r, max_r]. ``weight`` returns the
    factor by which the error at a number is multiplied. ``digits`` is the number of binary digits of the
    coefficients.
    """
    nodes = [max_r * cos(pi * (2 * i + 1) / (2 * NODES)) for i in range(NODES)]
    coefficients = []

    def weighted_error(x):
        return weight(x) * (function(x) - sum(a * x**k for k, a in enumerate(coefficients)))

    for k in range(degree + 1):
        powers = matrix([[weight(x) * x**i for i in range(k, degree + 1)] for x in nodes])
        solution = lu_solve(powers, matrix([weighted_error(x) for x in nodes]))
        coefficients.append(rounded(solution[0], digits))
    greatest = max(abs(weighted_error(x)) for x in linspace(-max_r, max_r, 1000))
    return coefficients, float(log(greatest, 2))


def rounded(x, digits=24):
    """Return the number with this number of binary digits that is nearest to x."""
    fraction, exponent = frexp(x)
    return ldexp(nint(ldexp(fraction, digits)), exponent - digits)


def round_to_grid(x):
    """Return the multiple of GRID nearest to x."""
    return nint(x / GRID) * GRID


def subtract_from_bits(x, j):
    """Return the float whose bits, as an integer, are j 2^20 less than the bits of x."""
    [bits] = struct.unpack("i", struct.pack("f", float(x)))
    return struct.unpack("f", struct.pack("i", bits - (j << 20)))[0]


def define(name, *values):
    """Print the definition of a macro. Round its values to floats."""
    texts = [literal(float(rounded(mpf(value)))) for value in values]
    lines = [", ".join(texts[i : i + 4]) for i in range(0, len(texts), 4)]
    body = lines if len(lines) == 1 else ["\\", ", \\\n    ".join(lines)]
    print(f"#define {name} " + "\n    ".join(body))


def literal(value):
    """Return a float as a hexadecimal literal of C, without trailing zeros."""
    mantissa, exponent = value.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}f" if value else "0"


if __name__ == "__main__":
    main()
