"""Print the constants of src/powf.c; needs mpmath.

A polynomial is fitted by least squares at Chebyshev nodes, which makes its greatest error nearly
the least possible. Its coefficients are rounded to floats one by one, the others fitted anew each
time.
"""

import struct

from mpmath import cos, expm1, frexp, ldexp, linspace, log, log1p, mp, mpf, nint, pi
from mpmath import lu_solve, matrix

mp.prec = 200
# The edges of the parts are 1/16 apart between FIRST and 1, and 1/8 between 1 and 2 FIRST. With few
# other values |r| < 2^-4 at all edges by reciprocals of 5 bits, so that r takes 24 bits at most.
FIRST = 1 - mpf(4.6875) / 16
RECIPROCALS = (1.375, 1.25, 1.1875, 1.0625, 1, 0.90625, 0.8125, 0.75)
STEP = log(2) / 8
# e log 2 - log c is below 89, and a multiple of this a float.
GRID = mpf(2) ** -17
NODES = 120


def main():
    """Print the constants as C macros, and the polynomials' errors as a comment."""
    edges = [FIRST + mpf(i) / 16 for i in range(5)]
    edges += [2 * FIRST - mpf(i) / 8 for i in (3, 2, 1, 0)]
    reach = max(abs(c * x - 1) for i, c in enumerate(RECIPROCALS) for x in edges[i : i + 2])
    logs = [-log(c) for c in RECIPROCALS]
    roots = [mpf(2) ** (mpf(j) / 8) for j in range(8)]
    p, p_error = fit(lambda r: -2 * (log1p(r) - r + r**2 / 2) / r**3, lambda r: r**2 / 2, 4, reach)
    q, q_error = fit(lambda f: (expm1(f) - f) / f**2, lambda f: f**2, 2, STEP / 2)
    define("FIRST", FIRST)
    define("RECIPROCALS", *RECIPROCALS)
    define("LOGS_HIGH", *map(coarse, logs))
    define("LOGS_LOW", *(exact - coarse(exact) for exact in logs))
    # They are multiplied by 2^23 e.
    define("LN2_HIGH", ldexp(coarse(log(2)), -23))
    define("LN2_LOW", ldexp(log(2) - coarse(log(2)), -23))
    for i, value in enumerate(p):
        define(f"P{i}", value)
    define("STEP_HIGH", STEP)
    define("STEP_LOW", STEP - rounded(STEP))
    # n 2^20 is added to their bits: n >> 3 to the exponent, and (n & 7) 2^20 that is too much.
    define("ROOTS", *(lacking(rounded(exact), j) for j, exact in enumerate(roots)))
    define("ROOTS_LOW", *(exact / rounded(exact) - 1 for exact in roots))
    for i, value in enumerate(q):
        define(f"Q{i}", value)
    print(f"/* |r| <= {float(reach):.5f}; errors 2^{p_error:.2f} r, 2^{q_error:.2f} */")


def fit(function, weight, degree, reach, digits=24):
    """Return coefficients of so many binary digits, and log2 of the greatest weighted error.

    They are for [-reach, reach].
    """
    nodes = [reach * cos(pi * (2 * i + 1) / (2 * NODES)) for i in range(NODES)]
    found = []

    def left(x):
        return weight(x) * (function(x) - sum(a * x**k for k, a in enumerate(found)))

    for k in range(degree + 1):
        powers = matrix([[weight(x) * x**i for i in range(k, degree + 1)] for x in nodes])
        found.append(rounded(lu_solve(powers, matrix([left(x) for x in nodes]))[0], digits))
    return found, float(log(max(abs(left(x)) for x in linspace(-reach, reach, 1000)), 2))


def rounded(x, digits=24):
    """Return the number of so many binary digits nearest to x."""
    fraction, exponent = frexp(x)
    return ldexp(nint(ldexp(fraction, digits)), exponent - digits)


def coarse(x):
    """Return the multiple of GRID nearest to x."""
    return nint(x / GRID) * GRID


def lacking(x, j):
    """Return the float whose bits, as an integer, are j 2^20 less than those of x."""
    [bits] = struct.unpack("i", struct.pack("f", float(x)))
    return struct.unpack("f", struct.pack("i", bits - (j << 20)))[0]


def define(name, *values):
    """Print a macro, its values rounded to floats."""
    texts = [literal(float(rounded(mpf(value)))) for value in values]
    lines = [", ".join(texts[i : i + 4]) for i in range(0, len(texts), 4)]
    rest = lines if len(lines) == 1 else ["\\", ", \\\n    ".join(lines)]
    print(f"#define {name} " + "\n    ".join(rest))


def literal(value):
    """Return a float in C's hexadecimal form, without the zeros at its end."""
    mantissa, exponent = value.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}f" if value else "0"


if __name__ == "__main__":
    main()
