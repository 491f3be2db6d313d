"""build/loops-alone.patch compiles only the loops of a reduction.

Without the patch, the module of each reduction includes Python's and NumPy's headers and contains
its own thunk.
"""

import itertools

import numpy as np
import pytest
import theano
from theano import scalar
from theano import tensor as tt
from theano.tensor import elemwise
from theano.tensor.linkers import LoopsModule

PLAIN = theano.Mode(theano.gof.vm.VM_Linker(use_cloop=True, allow_gc=False), None)
# Maps a name to a reduction, and to a NumPy function that computes it along the last dimension,
# element by element.
OPS = {
    "sum": (elemwise.Sum, lambda x, dtype: x.cumsum(-1, dtype)[:, -1]),
    "prod": (elemwise.Prod, lambda x, dtype: x.cumprod(-1, dtype)[:, -1]),
    "without zeros": (
        elemwise.ProdWithoutZeros,
        lambda x, dtype: np.where(x == 0, 1, x).cumprod(-1, dtype)[:, -1] * x.any(-1),
    ),
    "max": (lambda axis: elemwise.CAReduce(scalar.maximum, axis), lambda x, dtype: x.max(-1)),
    "min": (lambda axis: elemwise.CAReduce(scalar.minimum, axis), lambda x, dtype: x.min(-1)),
    "all": (elemwise.All, lambda x, dtype: x.all(-1)),
    "any": (elemwise.Any, lambda x, dtype: x.any(-1)),
    "xor": (
        lambda axis: elemwise.CAReduce(scalar.xor, axis),
        lambda x, dtype: np.bitwise_xor.reduce(x, -1),
    ),
}
INTEGERS = ("int8", "uint8", "int64", "uint64")
CASES = [
    *itertools.product(("sum", "prod", "without zeros"), (*INTEGERS, "float32", "float64")),
    *itertools.product(("max", "min"), ("bool", *INTEGERS, "float32", "float64")),
    *itertools.product(("all", "any"), ["bool"]),
    *itertools.product(["xor"], ("bool", *INTEGERS)),
]
AXES = (None, 0, 1, 2, (0, 1), (0, 2), (1, 2))


def get_module(node):
    return node.op.c_linker(node, []).get_dynamic_module()


def make_arrays(dtype):
    """Return arrays in C order, transposed, reversed, with gaps, and with lengths 1 and 0."""
    random = np.random.RandomState(0)
    least = 0 if dtype.startswith("u") else -3
    # `wide` has small elements. Products of large integers overflow to 0, which hides differences.
    plain, transposed, large, wide = (
        (random.uniform(least, 3, size) * factor).astype(dtype)
        for size, factor in (((3, 4, 5), 9), ((5, 4, 3), 9), ((3, 4, 10), 9), ((3, 4, 9), 0.6))
    )
    plain.flat[::7] = 0
    one, none = plain[:1, :1, :1], plain[:, :0]
    return [plain, transposed.T, large[:, ::-1, ::-2], wide, wide.transpose(2, 0, 1), one, none]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_elements_are_accumulated_in_c_order(name, dtype):
    """A result equals NumPy's to the last bit, accumulated in C order in the accumulator's type."""
    x = tt.TensorType(dtype, (False,) * 3)()
    build, reference = OPS[name]
    outputs = [build(axis)(x) for axis in AXES]
    for output in outputs:
        assert type(get_module(output.owner)) is LoopsModule
    functions = [theano.function([x], output, mode=PLAIN) for output in outputs]
    for value, (axis, output, function) in itertools.product(
        make_arrays(dtype), zip(AXES, outputs, functions, strict=True)
    ):
        axes = range(3) if axis is None else np.atleast_1d(axis)
        kept = [i for i in range(3) if i not in axes]
        last = value.transpose(*kept, *axes)
        shape = last.shape[: len(kept)]
        rows = np.ascontiguousarray(last).reshape(
            int(np.prod(shape)), int(np.prod(last.shape[len(kept) :]))
        )
        if rows.shape[1] == 0:
            continue
        acc = getattr(output.owner.op, "acc_dtype", None) or output.dtype
        expected = reference(rows, acc).reshape(shape).astype(output.dtype)
        for _ in range(2):
            result = function(value)
            assert result.dtype == output.dtype
            assert result.shape == shape
            assert result.tobytes() == expected.tobytes()


def test_reductions_of_no_elements_are_identities_or_errors():
    """A reduction of no elements is the identity, or an error that names the axis."""
    x = tt.matrix()
    for name, expected in (("sum", 0), ("prod", 1)):
        function = theano.function([x], OPS[name][0](0)(x), mode=PLAIN)
        assert function(np.zeros((0, 3), x.dtype)).tolist() == [expected] * 3
        assert function(np.zeros((2, 0), x.dtype)).tolist() == []
    flags = [OPS[name][0](None)(tt.ge(x, 0)) for name in ("all", "any")]
    function = theano.function([x], flags, mode=PLAIN)
    assert [result.tolist() for result in function(np.zeros((0, 3), x.dtype))] == [True, False]
    function = theano.function([x], OPS["max"][0](1)(x), mode=PLAIN)
    with pytest.raises(ValueError, match=r"CAReduce\{maximum\} has zero-size on axis 1"):
        function(np.zeros((2, 0), x.dtype))
    assert function(np.zeros((0, 2), x.dtype)).tolist() == []


def test_nan_is_the_maximum_and_the_minimum():
    """A nan is the maximum and the minimum, whether it is the first or the last element."""
    x = tt.matrix()
    functions = [theano.function([x], OPS[n][0](0)(x), mode=PLAIN) for n in ("max", "min")]
    value = np.array([[np.nan, 1, 2, np.inf], [3, np.nan, -np.inf, np.inf]], x.dtype)
    for function in functions:
        assert np.isnan(function(value)).tolist() == [True, True, False, False]


def test_output_memory_is_reused(thunk_of):
    x = tt.dmatrix()
    output = elemwise.Sum(0)(x)
    thunk, (storage,), result = thunk_of([x], output)
    storage[0] = np.ones((3, 4))
    thunk()
    first = result[0]
    thunk()
    assert result[0] is first
    storage[0] = np.ones((3, 2))
    thunk()
    assert result[0].tolist() == [3, 3]


def test_some_reductions_have_complete_modules():
    """Modules of complex types, and of reductions along no axis, contain more than loops."""
    for op, x in ((elemwise.Sum(0), tt.zmatrix()), (elemwise.Sum(()), tt.matrix())):
        assert type(get_module(op(x).owner)) is not LoopsModule


def test_the_module_includes_only_the_loops_header():
    """The module includes theano_loops.h, but not the headers of Python and NumPy."""
    code = get_module(elemwise.Sum(0)(tt.matrix()).owner).code()
    assert "theano_loops.h" in code
    assert "Python.h" not in code
    assert "numpy" not in code
