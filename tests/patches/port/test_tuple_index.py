"""port/current-numpy.patch indexes with tuples of slices instead of lists of slices.

NumPy 1.23 and later treat a list of slices as an array of indices. Without the patch, topk and the
Python code of pooling raise an error.
"""

import numpy as np
import pytest
import theano
from theano import tensor
from theano.tensor.signal.pool import pool_2d


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("k", [2, -2])
def test_topk_selects_the_largest_or_smallest_elements(k, axis):
    x = tensor.dmatrix("x")
    top = theano.function(
        [x],
        [
            tensor.topk(x, k, axis=axis, sorted=False),
            tensor.argtopk(x, k, axis=axis, sorted=False),
            *tensor.topk_and_argtopk(x, k, axis=axis, sorted=False),
        ],
    )
    values = np.random.RandomState(0).permutation(20).reshape(4, 5).astype("float64")
    ordered = np.sort(values, axis=axis)
    expected = np.take(ordered, [-2, -1] if k > 0 else [0, 1], axis=axis)
    top_values, indices, values_of_both, indices_of_both = top(values)
    for elements in (
        top_values,
        values_of_both,
        np.take_along_axis(values, indices, axis),
        np.take_along_axis(values, indices_of_both, axis),
    ):
        np.testing.assert_array_equal(np.sort(elements, axis=axis), expected)


@pytest.mark.parametrize("mode", ["max", "sum", "average_inc_pad", "average_exc_pad"])
def test_python_code_of_pooling_equals_c_code(mode):
    x = tensor.dmatrix("x")
    pooled = pool_2d(x, (2, 2), ignore_border=True, mode=mode)
    outputs = [pooled, tensor.grad(tensor.sqr(pooled).sum(), x)]
    if mode == "max":
        outputs.append(tensor.Rop(pooled, x, 2 * x))
    in_python = theano.function([x], outputs, mode=theano.Mode("py", None))
    in_c = theano.function([x], outputs)
    image = np.random.RandomState(0).rand(6, 4)
    for actual, expected in zip(in_python(image), in_c(image), strict=True):
        np.testing.assert_allclose(actual, expected)
