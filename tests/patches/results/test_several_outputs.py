"""results/several-outputs.patch: an Elemwise of several outputs computes each of them.

Users make such an Elemwise from a Composite. Without the patch, rewrites use the first output for
all outputs. An in-place Elemwise writes an output before it reads the inputs of other outputs.
"""

import numpy as np
import theano
from theano import scalar
from theano import tensor as tt

A, B = scalar.float64("a"), scalar.float64("b")
X, Y = tt.dvector(), tt.dvector()
ONE, OTHER = np.array([1.0, 2]), np.array([3.0, 5])


def check(outputs, *expected):
    """Assert that outputs, computed from X = ONE and Y = OTHER, have the expected values."""
    for actual, wanted in zip(theano.function([X, Y], outputs)(ONE, OTHER), expected, strict=True):
        np.testing.assert_allclose(actual, wanted)


def test_an_in_place_elemwise_computes_all_outputs():
    op = tt.Elemwise(scalar.Composite([A, B], [A * 2 + B, A - B, A * B]))
    u, v = np.exp(ONE), np.exp(OTHER)
    check(op(tt.exp(X), tt.exp(Y)), u * 2 + v, u - v, u * v)


def test_a_composite_computes_an_output_that_occurs_twice():
    op = tt.Elemwise(scalar.Composite([A, B], [A + B, A + B]))
    check(op(X, Y), ONE + OTHER, ONE + OTHER)


def test_rewrites_keep_all_outputs():
    op = tt.Elemwise(scalar.Composite([A, B], [A * B, A + B]))
    product, total = op(X, Y)
    outputs = [total.dimshuffle("x", 0), product.dimshuffle(0, "x")]
    check(outputs, (ONE + OTHER)[None], (ONE * OTHER)[:, None])
    product, total = op(tt.fill(X, 2.0), Y)
    check([total * 3, product * 3], 3 * (2 + OTHER), 6 * OTHER)
