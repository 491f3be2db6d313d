"""Print the constants of src/theano/gof/c_code/theano_functions.h; needs mpmath.

``PYTHONPATH=recipes/amdlibm python recipes/theano/functions_constants.py``: the polynomials are
powf_constants.fit's.
"""

from mpmath import expm1, log, mp
from powf_constants import fit, rounded

mp.prec = 200


def main():
    """Print the constants of each type, and log2 of the polynomial's error."""
    for name, digits, degree in (("float", 24, 5), ("double", 53, 10)):
        series, error = fit(
            lambda r: (expm1(r) - r) / r**2, lambda r: r, degree, log(2) / 2, digits
        )
        ln2 = rounded(log(2), digits)
        constants = {"LOG2_E": 1 / log(2), "LN2": ln2, "LN2_LOW": log(2) - ln2}
        constants |= {f"P{i}": value for i, value in enumerate(series)}
        for constant, value in constants.items():
            print(name, constant, float(rounded(value, digits)).hex())
        print(f"{name} error 2^{error:.2f} r")


if __name__ == "__main__":
    main()
