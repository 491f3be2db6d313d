"""build/short-sources.patch moves the checks of arrays from modules into functions of a header.

Without the patch, each module repeats the checks for each variable. The patch must not change the
error messages.
"""

import numpy as np
import pytest
import theano
import theano.tensor as tt
from theano.gof import cc


@pytest.fixture(scope="module")
def add():
    """Return a function that computes x + y; only its C code checks the types of the arguments."""
    x, y = tt.dmatrices("x", "y")
    function = theano.function([x, y], x + y)
    function.trust_input = True
    return function


def make_unaligned_array():
    return np.frombuffer(bytearray(33), dtype="float64", count=4, offset=1).reshape(2, 2)


GOOD = np.ones((2, 2))


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (None, ValueError, "expected an ndarray, not None"),
        (1.0, ValueError, "expected an ndarray"),
        (
            make_unaligned_array(),
            NotImplementedError,
            r"expected an aligned array of type \d+ \(NPY_FLOAT64\), got non-aligned array of type "
            r"\d+ with 2 dimensions, with 3 last dims -1, 2, 2 and 3 last strides -1 16, 8\.",
        ),
        (np.ones((2, 2), "float32"), TypeError, r"expected type_num \d+ \(NPY_FLOAT64\) got \d+"),
        (
            np.ones((3, 2)),
            ValueError,
            r"\(input\[0\]\.shape\[0\] = 2, input\[1\]\.shape\[0\] = 3\)",
        ),
    ],
)
def test_error_messages_for_invalid_arrays_are_unchanged(add, value, error, message):
    with pytest.raises(error, match=message):
        add(GOOD, value)


def test_outputs_are_correct_for_all_shapes_and_orders(add):
    """Results are correct if the output is allocated, reused or resized, for any strides."""
    for shape in ((2, 3), (2, 3), (4, 1), (0, 5)):
        x, y = np.random.RandomState(0).normal(size=(2, *shape))
        for order in "CF":
            assert np.array_equal(add(np.asarray(x, order=order), y), x + y)
    assert np.array_equal(add(GOOD[::-1], GOOD[:, ::-1]), GOOD + GOOD)


def test_modules_call_the_header_and_contain_no_checks():
    x, y = tt.dmatrices("x", "y")
    node = (x + y).owner
    linker = cc.CLinker().accept(theano.gof.FunctionGraph([x, y], node.outputs))
    code = linker.get_dynamic_module().code()
    assert "theano_is_array" in code
    assert "PyErr_Format(PyExc_NotImplementedError" not in code
    assert "std::sort" not in code


def test_returned_arrays_stay_unchanged(add):
    """Returned arrays and their views stay unchanged when the next output is computed."""
    values = np.random.RandomState(0).normal(size=(4, 6))
    returned = []
    for array in (
        values,
        values,
        values.T,
        np.asfortranarray(values),
        values[:2, :3],
        values[:0],
        values,
    ):
        result = add(array, array)
        returned.append((result, result[::-1], 2 * array))
    for result, view, expected in returned:
        assert np.array_equal(result, expected)
        assert np.array_equal(view, expected[::-1])
