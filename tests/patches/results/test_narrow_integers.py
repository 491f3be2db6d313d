"""results/wrapped-integers.patch: powers and truncations of integers equal the unoptimized results.

Without the patch, the square of a uint8 is computed in 8 bits and then widened. trunc of the
smallest int64 computes its negative, which is out of range.
"""

import numpy as np
import pytest
import theano
from theano import tensor as tt

PYTHON = theano.Mode("py", None)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


def check_unoptimized(x, y):
    """Assert that y, an expression of x, equals its unoptimized result for several values of x."""
    ends = np.iinfo(x.dtype)
    function, plain = (theano.function([x], y, mode=mode) for mode in (None, PYTHON))
    for value in (0, 1, 3, 20, 100, ends.max, ends.min):
        assert function(value) == plain(value)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("power", [0, 1, 2, 3, 4, 6])
def test_powers_of_integers_equal_unoptimized_results(dtype, power):
    x = tt.scalar("x", dtype)
    check_unoptimized(x, x**power)


@pytest.mark.parametrize("power", [2, 3, -2])
def test_a_float64_power_of_a_float32_does_not_overflow(power):
    x = tt.fscalar()
    function = theano.function([x], x ** tt.constant(power, dtype="float64"))
    value = np.float32(1e30)
    np.testing.assert_allclose(function(value), np.float64(value) ** power, rtol=1e-12)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_truncated_integers_equal_unoptimized_results(dtype):
    x = tt.scalar("x", dtype)
    check_unoptimized(x, tt.trunc(x))
