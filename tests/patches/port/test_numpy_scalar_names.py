"""port/current-numpy.patch replaces np.bool and np.complex, which NumPy 1.24 removed.

Without the patch, theano cannot be imported.
"""

import numpy as np
import pytest
import theano
from theano import scalar, tensor

FLOATS = ["float32", "float64", "complex64", "complex128"]
INTEGERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_python_code_of_cast_returns_the_dtype(dtype):
    cast = scalar.basic.Cast(scalar.Scalar(dtype))
    assert cast.impl(1) == 1
    assert cast.impl(1).dtype == dtype


@pytest.mark.parametrize("value", [True, 3, 2.5, 1 + 2j])
def test_a_scalar_can_be_shared(value):
    shared = scalar.sharedvar.shared(value)
    assert shared.get_value() == value


def test_python_code_of_complex_ops_uses_pythons_complex():
    real, imaginary = scalar.float64("real"), scalar.float64("imaginary")
    number = scalar.complex(real, imaginary)
    assert number.owner.op.impl(1.0, 2.0) == 1 + 2j
    assert scalar.complex_from_polar.impl(np.float32(2), np.float32(0)) == 2
    with pytest.raises(scalar.basic.ComplexError):
        scalar.mod_check(scalar.complex64(), scalar.complex64())


def test_python_code_of_products_and_constants_returns_numbers():
    assert scalar.mul.impl(2, 3, 4) == 24
    assert tensor.get_scalar_constant_value(theano.tensor.as_tensor_variable(3.5)) == 3.5
