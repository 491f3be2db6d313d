"""graph/cheap-types.patch caches the common type of some types.

Without the patch, NumPy adds zeros of these types each time.
"""

import itertools

import numpy as np
import pytest
import theano
from theano import scalar
from theano.scalar import basic

DTYPES = ("bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "float64", "complex64")


@pytest.mark.parametrize("policy", ["custom", "numpy+floatX"])
@pytest.mark.parametrize("float_x", ["float32", "float64"])
def test_common_types_follow_the_flags(float_x, policy):
    """A repeated call returns the same type, and the type follows changed flags."""
    with theano.change_flags(floatX=float_x, cast_policy=policy):
        for types in itertools.product(DTYPES, repeat=2):
            expected = np.result_type(*types).name
            if policy == "numpy+floatX" and expected == "float64" and "float64" not in types:
                expected = float_x
            for _ in range(2):
                assert scalar.upcast(*types) == expected


def test_no_zeros_are_added_again(monkeypatch):
    first = basic.upcast("int8", "float32", "bool")
    monkeypatch.setattr(basic, "np", None)
    assert basic.upcast("int8", "float32", "bool") == first


def test_numpy_types_are_not_cached():
    """NumPy's types work as before, and are not cached."""
    size = len(basic.upcast.cache)
    assert basic.upcast(np.dtype("int8"), np.float32) == "float32"
    assert len(basic.upcast.cache) == size
    with pytest.raises(TypeError):
        basic.upcast("int8", "no type")
