"""build/loops-alone.patch compiles the loops of an Elemwise without Python's and NumPy's headers.

Without the patch, the module of each Elemwise includes these headers and contains its own thunk.
"""

import gc
import itertools
import sys
import weakref

import numpy as np
import pytest
import theano
from theano import scalar
from theano import tensor as tt
from theano.gof.op import Op
from theano.gof.utils import MethodNotDefined
from theano.tensor.elemwise import Elemwise

DTYPES = ("bool", "int8", "int32", "int64", "uint8", "uint64", "float32", "float64")


def get_source(output):
    """Return the source of the module that computes a variable."""
    return output.owner.op.c_linker(output.owner, []).get_src_code()


def has_only_loops(output):
    """Return whether the module that computes a variable does not include Python's header."""
    return "Python.h" not in get_source(output)


def list_scalar_ops(modules=("basic", "basic_scipy")):
    """Return Theano's own scalar ops of some modules of theano.scalar, without Composites."""
    ops = {
        op
        for name in modules
        for op in vars(getattr(scalar, name)).values()
        if isinstance(op, scalar.ScalarOp) and not isinstance(op, scalar.Composite)
    }
    ops |= {tt.nnet.sigm.scalar_sigmoid, tt.nnet.sigm.scalar_softplus, tt.xlogx.xlogx.scalar_op}
    return sorted(ops, key=str)


def test_modules_of_loops_do_not_include_pythons_header():
    x, y = tt.dmatrices("x", "y")
    for output in (x + y, tt.exp(x), (x + 1) // 2, tt.neq(x, y), x.sum() * 3):
        assert has_only_loops(output)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_scalar_op_compiles(dtype):
    """The header of loops declares all names in the C code of Theano's own scalar ops."""
    inputs, outputs = [], []
    for op, arity in itertools.product(list_scalar_ops(), (1, 2, 3)):
        variables = [tt.TensorType(dtype, (False,))() for _ in range(arity)]
        try:
            output = Elemwise(op)(*variables)
            only_loops = has_only_loops(output)
        # The op takes another number of operands, or has no code for these types.
        except (AttributeError, TypeError, NotImplementedError, MethodNotDefined):
            continue
        if only_loops:
            inputs.extend(variables)
            outputs.append(output)
    assert len(outputs) > (60 if dtype.startswith("float") else 30)
    compiled = theano.function(inputs, outputs, mode=theano.Mode("cvm", None))
    assert all(value.shape == (3,) for value in compiled(*[np.ones(3, dtype)] * len(inputs)))


@pytest.mark.parametrize("shape", [(), (1,), (5,), (0,), (3, 4), (2, 1, 3), (2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8"])
def test_values_are_correct_for_any_memory_order(shape, dtype):
    """Results are correct for arrays in C order, in Fortran order and reversed."""
    values = np.random.RandomState(0).randint(1, 9, size=(2, *shape)).astype(dtype)
    x, y = (tt.TensorType(dtype, [False] * len(shape))() for _ in range(2))
    function = theano.function([x, y], [x * y + x, x - y])
    backwards = values[0][..., ::-1] if shape else values[0]
    for first in (values[0], np.array(values[0], order="F"), backwards):
        product, difference = function(first, values[1])
        assert np.array_equal(product, first * values[1] + first)
        assert np.array_equal(difference, first - values[1])


@pytest.mark.parametrize("shape", [(3, 4), (1, 4), (3, 1), (1, 1)])
def test_broadcast_inputs_have_correct_results(shape):
    x, y = tt.dmatrix(), tt.TensorType("float64", [size == 1 for size in shape])()
    function = theano.function([x, y], x - y)
    value = np.random.RandomState(1).normal(size=shape)
    expected = np.arange(12.0).reshape(3, 4) - value
    assert np.array_equal(function(np.arange(12.0).reshape(3, 4), value), expected)


def test_in_place_output_is_the_input_array(thunk_of):
    """An in-place op writes into the input's array, not into the array in the output's storage."""
    x, y = tt.dvectors("x", "y")
    output = Elemwise(scalar.Sub(scalar.transfer_type(1)), {0: 1})(x, y)
    assert has_only_loops(output)
    thunk, (first, second), result = thunk_of([x, y], output)
    first[0], second[0], result[0] = np.arange(3.0), np.ones(3), np.zeros(7)
    array = second[0]
    thunk()
    assert result[0] is array
    assert array.tolist() == [-1, 0, 1]


def test_an_op_of_several_outputs_computes_all():
    x, y = scalar.float64(), scalar.float64()
    op = Elemwise(scalar.Composite([x, y], [x + y, x * y]))
    a, b = tt.dmatrices("a", "b")
    outputs = op(a, b)
    assert has_only_loops(outputs[0])
    total, product = theano.function([a, b], outputs, mode=theano.Mode("cvm", None))(
        [[1, 2]], [[3, 4]]
    )
    assert (total.tolist(), product.tolist()) == ([[4, 6]], [[3, 8]])


def test_an_output_array_is_reused(thunk_of):
    x, y = tt.dvectors("x", "y")
    thunk, storages, result = thunk_of([x, y], x + y)
    for storage in storages:
        storage[0] = np.ones(4)
    thunk()
    first = result[0]
    storages[0][0] = np.arange(4.0)
    thunk()
    assert result[0] is first
    assert first.tolist() == [1, 2, 3, 4]


def test_fortran_order_is_kept(thunk_of):
    x, y = tt.dmatrices("x", "y")
    thunk, storages, result = thunk_of([x, y], x + y)
    for storage in storages:
        storage[0] = np.ones((3, 4), order="F")
    thunk()
    assert result[0].flags.f_contiguous


def make_strided_arrays(values):
    """Yield arrays with these non-zero values and other strides; gaps in memory are zeros."""
    rows, columns = values.shape
    yield np.array(values, order="F")
    for shape, index in (
        ((rows, 2 * columns), np.s_[:, ::2]),
        ((rows, columns + 1), np.s_[:, :0:-1]),
        ((2 * rows, columns), np.s_[::-2]),
    ):
        for order in "CF":
            base = np.zeros(shape, values.dtype, order)
            base[index] = values
            yield base[index]


STRIDED = pytest.mark.parametrize(
    "shape", [(3, 1100), (1100, 3), (20, 30), (1, 600), (600, 1), (2, 2)]
)


@STRIDED
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8"])
def test_results_do_not_depend_on_strides(shape, dtype):
    """Results are equal to the last bit for arrays with any strides.

    Loops read contiguous elements only; other arrays are copied first.
    """
    x, y = (tt.matrix(dtype=dtype) for _ in range(2))
    row, column = (tt.TensorType(dtype, pattern)() for pattern in ((True, False), (False, True)))
    total = x * y + row * x - column
    outputs = [tt.tanh(total) if "float" in dtype else total, (x > column) + y]
    function = theano.function([x, y, row, column], outputs)
    random = np.random.RandomState(1)
    first, second, along, across = (
        random.randint(1, 99, size).astype(dtype)
        for size in (shape, shape, (1, shape[1]), (shape[0], 1))
    )
    expected = function(first, second, along, across)
    assert (expected[1] == (first > across) + second).all()
    for left, right in itertools.product(
        [first, *make_strided_arrays(first)], [second, *make_strided_arrays(second)]
    ):
        for actual, wanted in zip(function(left, right, along, across), expected, strict=True):
            assert np.ascontiguousarray(actual).tobytes() == wanted.tobytes()


@STRIDED
def test_in_place_results_are_correct_for_any_strides(thunk_of, shape):
    """The loop writes the elements of a strided array, and nothing between them."""
    x, y = tt.dmatrices("x", "y")
    output = Elemwise(scalar.Sub(scalar.transfer_type(0)), {0: 0})(x, y)
    thunk, (first, second), result = thunk_of([x, y], output)
    random = np.random.RandomState(1)
    value, second[0] = random.uniform(1, 2, shape), random.uniform(3, 4, shape)
    for array in make_strided_arrays(value):
        first[0] = array
        thunk()
        assert result[0] is array
        assert (array == value - second[0]).all()
        assert np.count_nonzero(array if array.base is None else array.base) == array.size


def test_forty_strided_arrays_have_the_correct_sum():
    inputs = [tt.dmatrix() for _ in range(40)]
    function = theano.function(inputs, sum(inputs))
    value = np.random.RandomState(1).randint(1, 99, (3, 1100)).astype("float64")
    for array in make_strided_arrays(value):
        assert (function(*[array] * 40) == 40 * value).all()


@pytest.mark.parametrize("dimensions", [0, 1, 2])
def test_division_by_zero_leaks_no_reference(thunk_of, dimensions):
    """An error inside a loop leaks no reference and stores no output."""
    x, y = (tt.TensorType("int64", [False] * dimensions)() for _ in range(2))
    assert has_only_loops(x // y)
    thunk, (first, second), result = thunk_of([x, y], x // y)
    first[0], second[0] = np.ones((2,) * dimensions, int), np.zeros((2,) * dimensions, int)
    references = [sys.getrefcount(storage[0]) for storage in (first, second)]
    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match="integer division by zero"):
            thunk()
    assert result == [None]
    assert [sys.getrefcount(storage[0]) for storage in (first, second)] == references


def test_a_thunk_leaks_no_reference(thunk_of):
    x = tt.dvector()
    thunk, (storage,), result = thunk_of([x], tt.exp(x))
    storage[0] = np.ones(3)
    before = sys.getrefcount(storage[0])
    for _ in range(5):
        thunk()
    references = sys.getrefcount(storage[0]), sys.getrefcount(result[0])
    assert references == (before, 2)
    array = weakref.ref(storage[0])
    del thunk, storage, result
    gc.collect()
    assert array() is None


class CallPython(scalar.UnaryScalarOp):
    """A user's scalar op whose C code calls Python's C API."""

    def impl(self, x):
        return x + 1

    def c_code(self, node, name, inputs, outputs, sub):
        return f"{outputs[0]} = {inputs[0]} + PyLong_AsLong(Py_False) + 1;"


def test_ops_that_need_headers_include_pythons_header():
    x, z = tt.dvector(), tt.zvector()
    user_output = Elemwise(CallPython(scalar.same_out))(x)
    for output in (user_output, z + z, Elemwise(scalar.add, openmp=True)(x, x)):
        assert not has_only_loops(output)
    assert theano.function([x], user_output)([1.0]).tolist() == [2]
    assert theano.function([z], z * z)([1j]).tolist() == [-1]
    graph = theano.gof.FunctionGraph([x], [tt.exp(x) + 1], clone=True)
    assert "Python.h" in theano.gof.CLinker().accept(graph).get_dynamic_module().code()


def test_modules_of_other_ops_include_pythons_header():
    assert Op.c_linker is Elemwise.c_linker
    x = tt.dmatrix()
    assert "Python.h" in get_source(tt.nnet.softmax(x))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32"])
def test_every_op_has_the_same_results_in_place(dtype):
    """An op reads an element of an overwritten operand only before it writes the result there."""
    inputs, outputs, arguments = [], [], []
    ends = np.finfo(dtype) if dtype.startswith("float") else np.iinfo(dtype)
    numbers = np.array([ends.min, ends.max, *(i % (ends.max + 1.0) for i in range(-7, 8))])
    operands = [
        np.tile(numbers, len(numbers)),
        np.repeat(numbers, len(numbers)),
        np.tile(numbers[::-1], len(numbers)),
    ]
    operands = [np.where(operand == 0, 5, operand).astype(dtype) for operand in operands]
    for op, arity in itertools.product(list_scalar_ops(["basic"]), (1, 2, 3)):
        for overwritten in range(arity):
            variables = [tt.TensorType(dtype, (False,))() for _ in range(2 * arity)]
            try:
                pair = (
                    Elemwise(op)(*variables[:arity]),
                    Elemwise(op, {0: overwritten})(*variables[arity:]),
                )
                pair[0].owner.op.c_linker(pair[0].owner, []).get_src_code()
            except (AttributeError, TypeError, NotImplementedError, MethodNotDefined):
                continue
            inputs += variables
            outputs += pair
            arguments += operands[:arity] * 2
    compiled = theano.function(
        [theano.In(variable, mutable=True, borrow=True) for variable in inputs],
        outputs,
        mode=theano.Mode("cvm", None),
        accept_inplace=True,
    )
    results = compiled(*[argument.copy() for argument in arguments])
    assert len(results) > 60
    for output, separate, in_place in zip(outputs[::2], results[::2], results[1::2], strict=True):
        assert separate.tobytes() == in_place.tobytes(), output.owner.op
