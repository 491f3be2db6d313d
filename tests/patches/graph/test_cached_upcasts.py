"""graph/cheap-types.patch caches the common dtype that scalar.upcast returns.

Without the patch, each call of scalar.upcast lets NumPy add zeros of the dtypes.
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
    """scalar.upcast returns the correct dtype for each value of the flags, also if called again."""
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


def test_numpy_types_are_accepted_and_not_cached():
    """The arguments may be np.dtype objects and scalar types of NumPy, instead of names."""
    size = len(basic.upcast.cache)
    assert basic.upcast(np.dtype("int8"), np.float32) == "float32"
    assert len(basic.upcast.cache) == size
    with pytest.raises(TypeError):
        basic.upcast("int8", "no type")
