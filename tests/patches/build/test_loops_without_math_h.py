"""build/loops-alone.patch declares the functions of <math.h> that loops call.

Without the patch, g++ reads the header in each run: two fifths of a module's compile time.
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


def values(dtype):
    return np.array(VALUES if dtype.startswith("float") else [0, 1, 2, 100], dtype)


def code_of(output):
    return output.owner.op.c_linker(output.owner, []).get_src_code()


def module(code, *support_code):
    description = OpDescription(0, 1, 1, 2, -1, 0, (0, 1), (12, 12), code)
    return linkers.LoopsModule(linkers.Loops(["<math.h>"], support_code, description))


def same_with_and_without(inputs, outputs, arguments):
    """Assert that modules of loops compute the same bits as a module with <math.h>.

    Both call the C library's functions, because whole modules have no other functions.
    """
    with theano.change_flags({"gcc.cxxflags": "-DTHEANO_LIBM"}):
        alone, whole = (
            theano.function(
                inputs, outputs, mode=theano.Mode(linker, None), on_unused_input="ignore"
            )(*arguments)
            for linker in ("cvm", "c")
        )
    for output, one, other in zip(outputs, alone, whole, strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes(), output.owner.op


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_one_number_compute_the_same_bits(dtype):
    x = tt.TensorType(dtype, (False,))("x")
    outputs = [op(x) for op in UNARY + FLOATS * dtype.startswith("float")]
    same_with_and_without([x], outputs, [values(dtype)])


@pytest.mark.parametrize(("first", "second"), itertools.product(DTYPES[1:], repeat=2))
def test_functions_of_two_numbers_compute_the_same_bits(first, second):
    x, y = tt.TensorType(first, (False, True))("x"), tt.TensorType(second, (True, False))("y")
    same_with_and_without(
        [x, y], [op(x, y) for op in BINARY], [values(first)[:, None], values(second)[None, 1:]]
    )


def test_the_header_is_not_read():
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
        assert "math.h" not in code_of(output)


def test_the_header_is_read_for_other_functions():
    x = tt.dvector("x")
    for output in (tt.gamma(x), tt.isnan(x), tt.isinf(x)):
        assert "<math.h>" in code_of(output)


@pytest.mark.parametrize(
    "code",
    ["y = other(x);", "y = other (x);", "y = M_PI;", "y = NAN;", "y = HUGE_VALF;"],
)
def test_names_that_need_the_header(code):
    assert "<math.h>" in module(code).includes
    assert "<math.h>" in module("", code).includes


def test_modules_with_and_without_the_header_are_not_merged():
    with_header, without, another = (module(code) for code in ("other(x)", "exp(x)", "log(x)"))
    assert with_header.shared_prefix() != without.shared_prefix() == another.shared_prefix()
