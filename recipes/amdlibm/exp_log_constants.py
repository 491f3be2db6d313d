"""Compute the constants of src/exp_log.c with mpmath, and print them.

powf_constants.fit computes the polynomials.
"""

from mpmath import expm1, log, log1p, mp, mpf
from powf_constants import fit, rounded

mp.prec = 200
STEP = log(2) / 16
# The centres of the 16 parts of the mantissas from 1 to 2. Mantissas from 1.5 on are halved. The two
# parts next to 1 have the reciprocal 1. So |r| is greatest in the part that begins at 1.
CENTRES = [1, *((1 + (mpf(i) + 0.5) / 16) / (1 if i < 8 else 2) for i in range(1, 15)), 1]
MAX_R = mpf(1) / 16


def main():
    """Print the constants as C macros, and the polynomials' errors as a comment."""
    for kind, digits, degree, degree_of_log in (("FLOAT", 24, 1, 4), ("DOUBLE", 53, 4, 9)):
        coefficients, error = fit(
            lambda r: (expm1(r) - r) / r**2, lambda r: r**2, degree, STEP / 2, digits
        )
        define(f"{kind}_STEP_HIGH", digits, STEP)
        define(f"{kind}_STEP_LOW", digits, STEP - rounded(STEP, digits))
        for i, value in enumerate(coefficients):
            define(f"{kind}_P{i}", digits, value)
        define(f"{kind}_ROOTS", digits, *(mpf(2) ** (mpf(j) / 16) for j in range(16)))
        print(f"/* error 2^{error:.2f} */")
        coefficients, error = fit(
            lambda r: (log1p(r) - r) / r**2, lambda r: r, degree_of_log, MAX_R, digits
        )
        define(f"{kind}_LN2", digits, log(2))
        reciprocals = [rounded(1 / mpf(centre), digits) for centre in CENTRES]
        define(f"{kind}_RECIPROCALS", digits, *reciprocals)
        define(f"{kind}_LOGS", digits, *(-log(c) for c in reciprocals))
        for i, value in enumerate(coefficients):
            define(f"{kind}_Q{i}", digits, value)
        print(f"/* error 2^{error:.2f} r */")


def define(name, digits, *values):
    """Print the definition of a macro. Round its values to the number of binary digits."""
    texts = []
    for value in values:
        mantissa, exponent = float(rounded(mpf(value), digits)).hex().split("p")
        texts.append(f"{mantissa.rstrip('0').rstrip('.')}p{exponent}" + "f" * (digits == 24))
    lines = [", ".join(texts[i : i + 4]) for i in range(0, len(texts), 4)]
    body = lines if len(lines) == 1 else ["\\", ", \\\n    ".join(lines)]
    print(f"#define {name} " + "\n    ".join(body))


if __name__ == "__main__":
    main()
