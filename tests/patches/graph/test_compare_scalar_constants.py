"""graph/compare-scalar-constants.patch compares scalar constants as numbers of Python.

Without the patch, NumPy searches each constant for nan and sums its elements. A comparison of
scalars must have the same result as a comparison of arrays.
"""

import itertools

import numpy as np
import pytest
from theano import tensor

NUMBERS = (0.0, -0.0, 1.5, float("nan"), -float("nan"), float("inf"), -float("inf"))


@pytest.mark.parametrize(("left", "right"), itertools.product(NUMBERS, repeat=2))
def test_scalars_compare_like_arrays_of_one_element(left, right):
    scalars = [tensor.constant(number, dtype="float64").signature() for number in (left, right)]
    arrays = [tensor.constant(np.array([number])).signature() for number in (left, right)]
    assert (scalars[0] == scalars[1]) == (arrays[0] == arrays[1])
    if scalars[0] == scalars[1]:
        assert hash(scalars[0]) == hash(scalars[1])


def test_constants_of_different_types_differ():
    assert tensor.constant(1, dtype="int8").signature() != tensor.constant(1.0).signature()
    assert tensor.constant(np.array([1.0])).signature() != tensor.constant(1.0).signature()


def test_numpy_is_not_called(monkeypatch):
    monkeypatch.setattr(np, "isnan", lambda _: pytest.fail("numpy.isnan was called"))
    one, other = tensor.constant(2.5).signature(), tensor.constant(2.5).signature()
    assert one == other
    assert hash(one) == hash(other)
