"""build/loops-alone.patch declares the headers that the C code of each scalar op needs.

A wrong declaration makes g++ fail, or makes it compile headers that the loops do not need.
"""

import itertools
import re

import numpy as np
import pytest
from theano import scalar
from theano import tensor as tt
from theano.gof.utils import MethodNotDefined
from theano.scalar import basic_sympy
from theano.tensor import elemwise, xlogx
from theano.tensor.linkers import headers
from theano.tensor.linkers.op_descriptions import LOOPS_H
from theano.tensor.loops_cgen import FUNCTIONS
from theano.tensor.nnet import bn, nnet, sigm
from theano.tensor.updates_fusion import UpdatesComposite

COMPOSITES = {scalar.Composite, UpdatesComposite, bn.BNComposite}
# Ops that have C code but no declaration, so they get complete modules.
COMPLETE = {
    *(scalar.Chi2SF, scalar.GammaInc, scalar.GammaIncC, scalar.GammaL, scalar.GammaU),
    *(scalar.RoundHalfToEven, basic_sympy.SymPyCCode),
}
OPS = sorted(
    {
        op
        for module in (scalar.basic, scalar.basic_scipy, elemwise, xlogx, nnet, sigm)
        for op in vars(module).values()
        if isinstance(op, scalar.ScalarOp)
        and not (isinstance(op, scalar.Cast) and op.o_type.dtype not in headers.DTYPES)
    },
    key=str,
)
DTYPES = sorted(headers.DTYPES)
# Names from the headers of Python and NumPy that theano_loops.h declares too.
DECLARED = {
    *re.findall(r"^typedef .* (npy_\w+);", LOOPS_H, re.MULTILINE),
    *("PyErr_SetString", "PyExc_ZeroDivisionError"),
}
# Matches the names that headers of Python, NumPy, Theano and C++ declare.
HEADER_NAME = re.compile(r"\bstd\b|#\s*include\b|\b(?:_?Py|PY|NPY_|npy_|theano_)\w*")
# Words before a parenthesis for which code needs no <math.h>: keywords, and functions that
# theano_loops.h declares.
WITHOUT_MATH = {
    *re.findall(r"^THEANO_MATH_\d\((\w+)\)", LOOPS_H, re.MULTILINE),
    *("fill", "for", "if", "loops", "nan", "simdlen", "sizeof", "switch", "while"),
    *("PyErr_SetString", "THEANO_MACRO_MOD", "__builtin_inf"),
    *FUNCTIONS.values(),
}
# Matches words before a parenthesis, and constants of <math.h>.
CALLS = re.compile(r"\b(?:M_\w+|NAN|INFINITY|HUGE_VAL\w*|[A-Za-z_]\w*(?=\s*\())")


def find_subclasses(cls):
    """Return all direct and indirect subclasses of a class."""
    children = cls.__subclasses__()
    return {*children}.union(*map(find_subclasses, children))


def make_arrays(dtypes):
    return [tt.TensorType(dtype, (False, False))() for dtype in dtypes]


def make_loops(op, arrays):
    """Return the loops of an op, or None.

    The result is None if the op needs a complete module or does not support the dtypes.
    """
    try:
        node = op.make_node(*arrays)
        return node.op.c_linker(node, []).make_loops()
    except (TypeError, NotImplementedError, MethodNotDefined):
        return None


def find_undeclared(loops):
    """Return the names in loops that their headers do not declare."""
    code = "\n".join([*loops.support_code, loops.description.loops, loops.description.fill])
    names = {*HEADER_NAME.findall(code)} - DECLARED
    if headers.MATH not in loops.headers:
        names |= {*CALLS.findall(code)} - WITHOUT_MATH
    return names


@pytest.mark.parametrize("op", OPS, ids=str)
def test_headers_declare_all_names_in_loops(op):
    """The headers suffice for an op alone and in a Composite, for all combinations of dtypes."""
    n_loops = 0
    arities = [op.nin] if op.nin > 0 else [1, 2, 3]
    for dtypes in itertools.chain(*(itertools.product(DTYPES, repeat=n) for n in arities)):
        arrays = make_arrays(dtypes)
        loops = make_loops(elemwise.Elemwise(op), arrays)
        if loops is None:
            continue
        n_loops += 1
        assert not find_undeclared(loops)
        scalars = [scalar.get_scalar_type(dtype)() for dtype in dtypes]
        composite = scalar.Composite(scalars, [scalar.identity(op(*scalars))])
        fused = make_loops(elemwise.Elemwise(composite), arrays)
        assert fused.headers == loops.headers
        assert not find_undeclared(fused)
    assert bool(n_loops) == (type(op) in headers.list_math_dtypes())


@pytest.mark.parametrize("dtype", DTYPES)
def test_headers_declare_all_names_in_reductions(dtype):
    (array,) = make_arrays([dtype])
    reductions = [elemwise.CAReduce(op, 0) for op in OPS if op.nin in {-1, 2}]
    for dtypes in itertools.product(DTYPES, DTYPES):
        for kind in (elemwise.Sum, elemwise.Prod, elemwise.ProdWithoutZeros):
            reductions.append(kind(0, *dtypes))
    all_loops = [make_loops(op, [array]) for op in reductions]
    assert sum(loops is not None for loops in all_loops) > 20
    assert not any(find_undeclared(loops) for loops in all_loops if loops)


def test_the_table_has_all_other_classes_with_c_code():
    undeclared = {
        cls
        for cls in find_subclasses(scalar.ScalarOp) - headers.list_math_dtypes().keys()
        # If another test has imported theano.gpuarray, find_subclasses also finds its ops.
        if cls.__module__.startswith("theano.")
        and not cls.__module__.startswith("theano.gpuarray.")
        and cls.c_code is not scalar.ScalarOp.c_code
    }
    assert undeclared == COMPOSITES | COMPLETE
    assert headers.list_math_dtypes().keys() <= {type(op) for op in OPS}


class Subclass(scalar.Exp):
    """A subclass of an op in the table, whose C code may need other headers."""


@pytest.mark.parametrize("op", [Subclass(scalar.same_out), scalar.round_half_to_even])
def test_an_op_that_is_not_in_the_table_needs_a_complete_module(op):
    x = scalar.float64()
    assert headers.PYTHON in headers.find_headers(op, ["float64"], ["float64"])
    composite = scalar.Composite([x], [scalar.exp(op(x))])
    assert headers.PYTHON in headers.find_headers(composite, ["float64"], ["float64"])


@pytest.mark.parametrize("dtype", ["float16", "complex64", "complex128"])
def test_other_dtypes_need_a_complete_module(dtype):
    x, y = scalar.float64(), scalar.get_scalar_type(dtype)()
    inner = scalar.Composite([x], [scalar.eq(scalar.cast(x, dtype), x)])
    unused = scalar.Composite([x, y], [scalar.exp(x)])
    for op, dtypes in (
        (scalar.add, [dtype, "float64"]),
        (scalar.Cast(scalar.get_scalar_type(dtype)), ["float64"]),
        (inner, ["float64"]),
        (unused, ["float64", dtype]),
    ):
        assert make_loops(elemwise.Elemwise(op), make_arrays(dtypes)) is None
    assert make_loops(elemwise.Sum(0), make_arrays([dtype])) is None


def test_constants_of_other_dtypes_need_no_header():
    """The C code contains only the constant's value, which has no type."""
    x = scalar.float64()
    half = scalar.ScalarConstant(scalar.float16, np.float16(0.5))
    loops = make_loops(
        elemwise.Elemwise(scalar.Composite([x], [x * half])), make_arrays(["float64"])
    )
    assert loops.headers == []


@pytest.mark.parametrize("kind", [scalar.Composite, UpdatesComposite])
def test_a_composite_needs_the_headers_of_its_inner_ops(kind):
    x, n = scalar.float64(), scalar.int64()
    inner = scalar.Composite([x], [scalar.isnan(x)])
    for outputs, expected in (
        ([scalar.isnan(scalar.cast(x, "int8")), n // n], []),
        ([scalar.isnan(x), n // n], [headers.MATH]),
        ([scalar.exp(inner(x)), n + n], [headers.MATH]),
    ):
        loops = make_loops(
            elemwise.Elemwise(kind([x, n], outputs)), make_arrays(["float64", "int64"])
        )
        assert loops.headers == expected
