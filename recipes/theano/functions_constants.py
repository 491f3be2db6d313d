"""Computation of the constants in src/theano/gof/c_code/theano_functions.cpp, with mpmath.

Run it as ``PYTHONPATH=recipes/amdlibm python recipes/theano/functions_constants.py``. The module
powf_constants of recipes/amdlibm fits the polynomials.
"""

from mpmath import atan, atanh, expm1, floor, log, mp, mpf, sqrt
from powf_constants import fit, rounded

mp.prec = 300
# For each C type: the number of binary digits, the number of binary digits of LN2_SHORT after the
# point, and the degrees of the polynomials of exp and log. LN2_SHORT has few digits, so that the
# product of LN2_SHORT and an exponent is exact. Exponents are below 2^8 (float) and 2^11 (double).
FORMATS = (("float", 24, 16, 5, 2), ("double", 53, 42, 10, 8))
# The greatest value of s^2, where s = (m - 1) / (m + 1) for a mantissa m from sqrt(1/2) to sqrt(2).
MAX_SQUARE = ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2


def compute_exp_remainder(r):
    """Compute (e^r - 1 - r) / r^2."""
    return (expm1(r) - r) / r**2


def compute_log_remainder(z):
    """Compute (atanh(s) / s - 1 - z / 3) / z^2 for z = s^2. For z < 0, atan replaces atanh."""
    s = sqrt(abs(z))
    return ((atanh(s) if z > 0 else atan(s)) / s - 1 - z / 3) / z**2


def main():
    """Print the constants of each type, and the base-2 logarithms of the polynomials' errors."""
    for name, digits, short, exp_degree, log_degree in FORMATS:
        p, p_error = fit(compute_exp_remainder, lambda r: r, exp_degree, log(2) / 2, digits)
        q, q_error = fit(compute_log_remainder, lambda z: z**2, log_degree, MAX_SQUARE, digits)
        ln2 = rounded(log(2), digits)
        ln2_short = floor(log(2) * mpf(2) ** short) / mpf(2) ** short
        constants = {"ROOT_HALF": sqrt(mpf(1) / 2), "LOG2_E": 1 / log(2)}
        constants |= {"LN2": ln2, "LN2_LOW": log(2) - ln2}
        constants |= {"LN2_SHORT": ln2_short, "LN2_REST": log(2) - ln2_short}
        constants |= {f"exp {i}": value for i, value in enumerate(p)}
        constants |= {f"log {i}": value for i, value in enumerate(q)}
        for constant, value in constants.items():
            print(name, constant, float(rounded(value, digits)).hex())
        print(f"{name} errors: 2^{p_error:.2f} r, 2^{q_error:.2f}")


if __name__ == "__main__":
    main()
