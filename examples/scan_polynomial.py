"""Scan over two sequences: compute a polynomial's terms from coefficients and exponents.

Prints:
    19.0
"""

import numpy
import theano
import theano.tensor as T

coefficients, x = T.vector("coefficients"), T.scalar("x")
terms, _ = theano.scan(
    lambda coefficient, exponent, x: coefficient * x**exponent,
    sequences=[coefficients, T.arange(coefficients.shape[0])],
    non_sequences=x,
)
polynomial = theano.function([coefficients, x], terms.sum())
# 1 + 0 x + 2 x^2 at 3
print(polynomial(numpy.array([1, 0, 2], theano.config.floatX), 3))
