"""results/wrapped-integers.patch: powers and truncations of integers equal the unoptimized results.

Without the patch, uint8**2 is computed in 8 bits and then widened, and the smallest int64 is
truncated to its negative.
"""

import numpy as np
import pytest
import theano
from theano import tensor as tt

PYTHON = theano.Mode("py", None)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


def compare(x, y):
    ends = np.iinfo(x.dtype)
    function, plain = (theano.function([x], y, mode=mode) for mode in (None, PYTHON))
    for value in (0, 1, 3, 20, 100, ends.max, ends.min):
        assert function(value) == plain(value)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("power", [0, 1, 2, 3, 4, 6])
def test_powers_of_narrow_integers(dtype, power):
    x = tt.scalar("x", dtype)
    compare(x, x**power)


@pytest.mark.parametrize("power", [2, 3, -2])
def test_powers_of_a_narrow_float(power):
    x = tt.fscalar()
    function = theano.function([x], x ** tt.constant(power, dtype="float64"))
    value = np.float32(1e30)
    np.testing.assert_allclose(function(value), np.float64(value) ** power, rtol=1e-12)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_truncated_integers(dtype):
    x = tt.scalar("x", dtype)
    compare(x, tt.trunc(x))
