"""Print the constants of src/theano/gof/c_code/theano_functions.cpp; needs mpmath.

``PYTHONPATH=recipes/amdlibm python recipes/theano/functions_constants.py``: powf_constants.fit
computes the polynomials.
"""

from mpmath import atan, atanh, expm1, floor, log, mp, mpf, sqrt
from powf_constants import fit, rounded

mp.prec = 300
# The products of LN2_SHORT and exponents, which are below 2^11 and 2^8, are exact.
FORMATS = (("float", 24, 16, 5, 2), ("double", 53, 42, 10, 8))
# s = (m - 1) / (m + 1) is greatest at sqrt 2.
REACH = ((sqrt(2) - 1) / (sqrt(2) + 1)) ** 2


def exp_series(r):
    """Compute (e^r - 1 - r) / r^2."""
    return (expm1(r) - r) / r**2


def log_series(z):
    """Compute (atanh s / s - 1 - z / 3) / z^2 for z = s^2."""
    s = sqrt(abs(z))
    return ((atanh(s) if z > 0 else atan(s)) / s - 1 - z / 3) / z**2


def main():
    """Print the constants of each type, and log2 of the polynomials' errors."""
    for name, digits, short, exp_degree, log_degree in FORMATS:
        p, p_error = fit(exp_series, lambda r: r, exp_degree, log(2) / 2, digits)
        q, q_error = fit(log_series, lambda z: z**2, log_degree, REACH, digits)
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
