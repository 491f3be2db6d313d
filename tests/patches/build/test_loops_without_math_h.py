"""build/loops-alone.patch declares the functions of <math.h> that loops call in a short header.

Without the patch, g++ reads <math.h> for each module: two fifths of the module's compile time.
"""

import itertools

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.tensor import linkers
from theano.tensor.linkers.op_descriptions import OpDescription

DTYPES = ("bool", "int8", "int64", "uint64", "float32", "float64")
FLOATS = [
    tt.ceil,
    tt.sgn,
    tt.floor,
    tt.round,
    tt.trunc,
    tt.isnan,
    tt.nnet.sigmoid,
    tt.nnet.softplus,
]
UNARY = [tt.arccos, tt.arccosh, tt.arcsin, tt.arcsinh, tt.arctan, tt.arctanh, tt.cos]
UNARY += [tt.cosh, tt.erf, tt.erfc, tt.exp, tt.exp2, tt.expm1, tt.log, tt.log10]
UNARY += [tt.log1p, tt.log2, tt.sin, tt.sinh, tt.sqrt, tt.tan, tt.tanh, tt.abs_]
BINARY = [tt.arctan2, tt.pow, tt.mod, tt.maximum]
VALUES = [0, 1, 2, 0.5, -0.5, 3.7, 1e3, -2, np.inf, -np.inf, np.nan]


def make_values(dtype):
    return np.array(VALUES if dtype.startswith("float") else [0, 1, 2, 100], dtype)


def get_source(output):
    return output.owner.op.c_linker(output.owner, []).get_src_code()


def make_module(code, *headers):
    """Return a module of loops that includes headers."""
    description = OpDescription(0, 1, 1, 2, -1, 0, (0, 1), (12, 12), code)
    return linkers.LoopsModule(linkers.Loops(headers, [], description))


def check_same_bits(inputs, outputs, arguments):
    """Assert that modules of loops compute the same bits as a complete module with <math.h>.

    -DTHEANO_LIBM makes loops call the C library's functions, as complete modules do.
    """
    with theano.change_flags({"gcc.cxxflags": "-DTHEANO_LIBM"}):
        of_loops, of_complete = (
            theano.function(
                inputs, outputs, mode=theano.Mode(linker, None), on_unused_input="ignore"
            )(*arguments)
            for linker in ("cvm", "c")
        )
    for output, actual, expected in zip(outputs, of_loops, of_complete, strict=True):
        assert actual.dtype == expected.dtype
        assert actual.tobytes() == expected.tobytes(), output.owner.op


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_one_number_compute_the_same_bits(dtype):
    x = tt.TensorType(dtype, (False,))("x")
    outputs = [op(x) for op in UNARY + FLOATS * dtype.startswith("float")]
    check_same_bits([x], outputs, [make_values(dtype)])


@pytest.mark.parametrize(("first", "second"), itertools.product(DTYPES[1:], repeat=2))
def test_functions_of_two_numbers_compute_the_same_bits(first, second):
    x, y = tt.TensorType(first, (False, True))("x"), tt.TensorType(second, (True, False))("y")
    check_same_bits(
        [x, y],
        [op(x, y) for op in BINARY],
        [make_values(first)[:, None], make_values(second)[None, 1:]],
    )


def test_loops_that_call_declared_functions_omit_math_h():
    x, n = tt.fvector("x"), tt.lvector("n")
    for output in (
        tt.exp(x),
        x + 1,
        tt.pow(x, n),
        tt.sqrt(n),
        x.sum(),
        tt.nnet.sigmoid(x),
        tt.sgn(x),
        n // 3,
        n % 3,
    ):
        assert "math.h" not in get_source(output)


def test_loops_that_call_other_functions_include_math_h():
    x = tt.dvector("x")
    for output in (tt.gamma(x), tt.isnan(x), tt.isinf(x)):
        assert "<math.h>" in get_source(output)


def test_modules_with_and_without_math_h_are_not_in_one_batch():
    with_header = make_module("other(x)", "<math.h>")
    without, another = make_module("exp(x)"), make_module("log(x)")
    assert with_header.shared_prefix() != without.shared_prefix() == another.shared_prefix()
