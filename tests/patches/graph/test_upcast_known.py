"""The type that some types are cast to is found once.

Without the patch, it was that of a sum of zeros, which NumPy computed each time.
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
def test_types(float_x, policy):
    """The same again, and with other flags the others."""
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


def test_what_is_no_name():
    """NumPy's types work as before, and are not kept."""
    known = len(basic.upcast.known)
    assert basic.upcast(np.dtype("int8"), np.float32) == "float32"
    assert len(basic.upcast.known) == known
    with pytest.raises(TypeError):
        basic.upcast("int8", "no type")
