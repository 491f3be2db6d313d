"""The larger and the smaller of integers are those integers.

Without the patch, both became doubles: what needs more than 53 bits was rounded. The maximum of a
window was another one where nan came after it.
"""

import itertools

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.tensor.signal.pool import pool_2d

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def extremes(dtype):
    limits = np.iinfo(dtype)
    most = limits.max
    return np.array([limits.min, limits.min + 1, 0, 1, most // 2 + 1, most - 1, most], dtype)


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_reduced(dtype):
    x = tt.vector(dtype=dtype)
    function = theano.function([x], [tt.max(x), tt.min(x)])
    values = np.array([False, True]) if dtype == "bool" else extremes(dtype)
    for pair in itertools.product(values, repeat=2):
        largest, smallest = function(np.array(pair, dtype))
        assert (largest, smallest) == (max(pair), min(pair))
        assert largest.dtype == smallest.dtype == dtype


@pytest.mark.parametrize(
    "types", [p for p in itertools.product(INTEGERS, repeat=2) if np.result_type(*p).kind in "iu"]
)
def test_of_two(types):
    """Also of types of which C takes the signed for an unsigned one."""
    x, y = (tt.vector(dtype=each) for each in types)
    function = theano.function([x, y], [tt.maximum(x, y), tt.minimum(x, y)])
    pairs = list(itertools.product(*map(extremes, types)))
    first, second = (np.array([pair[i] for pair in pairs], types[i]) for i in range(2))
    largest, smallest = function(first, second)
    assert largest.tolist() == [max(int(a), int(b)) for a, b in pairs]
    assert smallest.tolist() == [min(int(a), int(b)) for a, b in pairs]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_not_a_number(dtype):
    x, y = (tt.vector(dtype=dtype) for _ in range(2))
    function = theano.function([x, y], [tt.maximum(x, y), tt.minimum(x, y)])
    values = np.array([np.nan, 1, -np.inf], dtype)
    for result in function(values, values[::-1].copy()):
        assert np.isnan(result).tolist() == [True, False, True]


def test_not_a_number_in_a_window():
    x = tt.tensor4()
    pooled = pool_2d(x, (2, 2), ignore_border=True)
    outputs = [pooled, tt.grad(pooled.sum(), x)]
    values = np.arange(4) == np.arange(4)[:, None]
    image = np.where(values, np.nan, np.arange(4.0)).reshape(4, 1, 2, 2)
    for mode in (None, theano.Mode("py", None)):
        largest, gradient = theano.function([x], outputs, mode=mode)(image)
        assert np.isnan(largest).all()
        assert not gradient.any()


@pytest.mark.parametrize("mode", [None, theano.Mode("py", None)])
def test_the_gradient_of_a_window_stays_in_it(mode):
    x = tt.tensor4()
    pooled = pool_2d(x, (2, 3), ignore_border=True, pad=(0, 1))
    gradient = theano.function([x], tt.grad(pooled.sum(), x), mode=mode)
    found = gradient(np.array([0, -1, 0.5, 0.5, -3, 1], x.dtype).reshape(1, 1, 2, 3))
    np.testing.assert_array_equal(found[0, 0], [[0, 0, 0], [1, 0, 0]])
