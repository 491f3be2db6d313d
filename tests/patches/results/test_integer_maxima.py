"""results/integer-maxima.patch computes maxima and minima of integers as integers.

Without the patch, maxima and minima are computed as doubles, so integers of more than 53 bits are
rounded. The maximum of a pooling window is wrong if a nan is not its first element.
"""

import itertools

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.tensor.signal.pool import MaxPoolGrad, Pool, pool_2d

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def make_extremes(dtype):
    limits = np.iinfo(dtype)
    most = limits.max
    return np.array([limits.min, limits.min + 1, 0, 1, most // 2 + 1, most - 1, most], dtype)


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_maximum_and_minimum_of_a_vector_are_exact(dtype):
    x = tt.vector(dtype=dtype)
    function = theano.function([x], [tt.max(x), tt.min(x)])
    values = np.array([False, True]) if dtype == "bool" else make_extremes(dtype)
    for pair in itertools.product(values, repeat=2):
        largest, smallest = function(np.array(pair, dtype))
        assert (largest, smallest) == (max(pair), min(pair))
        assert largest.dtype == smallest.dtype == dtype


@pytest.mark.parametrize(
    "types", [p for p in itertools.product(INTEGERS, repeat=2) if np.result_type(*p).kind in "iu"]
)
def test_maximum_and_minimum_of_two_numbers_are_exact(types):
    """Results equal Python's for all pairs of types that have a common integer type.

    In C, a comparison of int32 and uint32 converts negative numbers to uint32.
    """
    x, y = (tt.vector(dtype=dtype) for dtype in types)
    function = theano.function([x, y], [tt.maximum(x, y), tt.minimum(x, y)])
    pairs = list(itertools.product(*map(make_extremes, types)))
    first, second = (np.array([pair[i] for pair in pairs], types[i]) for i in range(2))
    largest, smallest = function(first, second)
    assert largest.tolist() == [max(int(a), int(b)) for a, b in pairs]
    assert smallest.tolist() == [min(int(a), int(b)) for a, b in pairs]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_is_the_maximum_and_the_minimum(dtype):
    x, y = (tt.vector(dtype=dtype) for _ in range(2))
    function = theano.function([x, y], [tt.maximum(x, y), tt.minimum(x, y)])
    values = np.array([np.nan, 1, -np.inf], dtype)
    for result in function(values, values[::-1].copy()):
        assert np.isnan(result).tolist() == [True, False, True]


def test_nan_is_the_maximum_of_a_window():
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
def test_the_gradient_of_a_padded_window_stays_in_the_image(mode):
    x = tt.tensor4()
    pooled = pool_2d(x, (2, 3), ignore_border=True, pad=(0, 1))
    gradient = theano.function([x], tt.grad(pooled.sum(), x), mode=mode)
    slope = gradient(np.array([0, -1, 0.5, 0.5, -3, 1], x.dtype).reshape(1, 1, 2, 3))
    np.testing.assert_array_equal(slope[0, 0], [[0, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "float64"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_pooling_in_c_equals_pooling_in_python(axes, dtype):
    """Random windows, strides and paddings have equal maxima and gradients in C and in Python."""
    rng = np.random.default_rng([axes, np.dtype(dtype).num])
    x, top = (tt.TensorType(dtype, (False,) * (axes + 1))() for _ in range(2))
    layout = [tt.lvector() for _ in range(3)]
    for ignore_border in (True, False):
        pooled = Pool(ignore_border, ndim=axes)(x, *layout)
        slope = MaxPoolGrad(ignore_border, ndim=axes)(x, pooled, top, *layout)
        modes = (None, theano.Mode("py", None))
        forward = [theano.function([x, *layout], pooled, mode=mode) for mode in modes]
        backward = [theano.function([x, top, *layout], slope, mode=mode) for mode in modes]
        for _ in range(20):
            window, strides = rng.integers(1, 4, (2, axes))
            pads = rng.integers(0, window) if ignore_border else 0 * window
            # The small range makes some elements equal.
            image = rng.integers(0, 9, (2, *rng.integers(4, 8, axes))).astype(dtype)
            if dtype.startswith("float"):
                image[rng.random(image.shape) < 0.05] = np.nan
                image[rng.random(image.shape) < 0.1] = -np.inf
            # Also test arrays that are not contiguous.
            image = image[..., :: rng.choice([1, -1])]
            in_c, in_python = (function(image, window, strides, pads) for function in forward)
            assert in_c.dtype == dtype
            np.testing.assert_array_equal(in_c, in_python)
            above = rng.integers(0, 9, in_c.shape).astype(dtype)
            in_c, in_python = (
                function(image, above, window, strides, pads) for function in backward
            )
            np.testing.assert_array_equal(in_c, in_python)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pooling_selects_the_first_of_two_zeros(dtype):
    """If a window contains -0.0 and 0.0, the maximum is the first of them: they are equal."""
    x = tt.tensor4(dtype=dtype)
    pooled = theano.function([x], pool_2d(x, (1, 2), ignore_border=True))
    zeros = np.array([-0.0, 0.0, 0.0, -0.0], dtype).reshape(1, 1, 2, 2)
    assert np.signbit(pooled(zeros)).ravel().tolist() == [True, False]
