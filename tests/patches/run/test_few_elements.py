"""run/few-elements.patch sets or increments a few elements without NumPy.

Without the patch, NumPy prepares a loop for each set or increment. The first test does not find the
patch's function in the C code.
"""

import itertools

import numpy as np
import pytest
import theano
from theano import tensor
from theano.gof.cc import CLinker

DTYPES = ("float32", "float64", "int64", "bool", "complex128")
INDICES = (
    lambda i: i,
    lambda i: (i, i),
    lambda i: np.s_[i:],
    lambda i: np.s_[::-1, i],
    lambda i: np.s_[i, ::-2],
    lambda i: np.s_[:, :i],
    lambda i: np.s_[i, i + 1 :],
)


def get_source(output, *inputs):
    """Return the C source for the node that computes the output of a compiled function."""
    fgraph = theano.function(list(inputs), output).maker.fgraph
    node = fgraph.outputs[0].owner
    graph = theano.gof.FunctionGraph(node.inputs, node.outputs)
    return CLinker().accept(graph).get_src_code()


def test_c_code_calls_the_loop_for_few_elements():
    x, y = tensor.dmatrix(), tensor.dvector()
    assert "theano_update_few(1" in get_source(tensor.inc_subtensor(x[1], y), x, y)
    assert "theano_update_few(0" in get_source(tensor.set_subtensor(x[1], y), x, y)
    assert "theano_update_few(false" in get_source(tensor.alloc(y, 2, y.size), y)


def make_layouts(values):
    """Yield arrays with the same values: writeable, read-only, and with different strides."""
    yield values
    read_only = values.copy()
    read_only.flags.writeable = False
    yield read_only
    if values.ndim:
        yield np.asfortranarray(values)
        yield np.repeat(values, 2, axis=0)[::2]
        yield np.ascontiguousarray(values[::-1])[::-1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("of_set", [False, True])
@pytest.mark.parametrize("number", range(len(INDICES)))
def test_parts_are_set_and_incremented(dtype, of_set, number):
    x, i = tensor.TensorType(dtype, (False, False))("x"), tensor.lscalar()
    part = x[INDICES[number](i)]
    y = tensor.TensorType(dtype, (False,) * part.ndim)("y")
    scalar = tensor.TensorType(dtype, ())("scalar")
    update = tensor.set_subtensor if of_set else tensor.inc_subtensor
    function = theano.function([x, y, scalar, i], [update(part, y), update(part, scalar)])
    random = np.random.RandomState(0)
    for shape, index in itertools.product(((4, 4), (4, 7), (40, 30), (90, 80)), (1, -2, 2)):
        values = random.uniform(-9, 9, shape).astype(dtype)
        key = INDICES[number](index)
        addend = np.asarray(random.uniform(-9, 9, values[key].shape)).astype(dtype)
        for array, other in zip(make_layouts(values), make_layouts(addend), strict=False):
            for result, value in zip(
                function(array, other, addend.dtype.type(3), index), (other, 3), strict=True
            ):
                expected = values.copy()
                if of_set:
                    expected[key] = value
                else:
                    expected[key] += np.asarray(value).astype(dtype)
                np.testing.assert_array_equal(result, expected)
            np.testing.assert_array_equal(array, values)


def test_a_shared_variable_is_updated_in_place():
    state = theano.shared(np.zeros((3, 4)))
    i, value = tensor.lscalar(), tensor.dvector()
    function = theano.function([i, value], updates=[(state, tensor.inc_subtensor(state[i], value))])
    held = state.get_value(borrow=True)
    for index in (0, 2, -1, 0):
        function(index, np.arange(4.0))
    assert state.get_value(borrow=True) is held
    np.testing.assert_array_equal(held, np.arange(4.0) * [[2], [0], [2]])


@pytest.mark.parametrize("key", [np.s_[:2], np.s_[::-1], np.s_[1:]])
@pytest.mark.parametrize("of_set", [False, True])
def test_a_value_that_shares_memory_with_the_part_is_read_first(key, of_set):
    x = tensor.dvector()
    update = tensor.set_subtensor if of_set else tensor.inc_subtensor
    start = tensor.lscalar()
    values = np.arange(1.0, 4.0)
    value = x[key]
    function = theano.function([x, start], update(x[start : start + value.size], value))
    expected = values.copy()
    size = values[key].size
    expected[:size] = values[key] + (0 if of_set else values[:size])
    np.testing.assert_array_equal(function(values, 0), expected)
    # Theano itself never passes an array and a part of it to an in-place op.
    a, b = tensor.dvectors("a", "b")
    function = theano.function(
        [theano.In(a, mutable=True, borrow=True), theano.In(b, borrow=True), start],
        theano.Out(update(a[start : start + b.size], b), borrow=True),
        accept_inplace=True,
    )
    array = values.copy()
    np.testing.assert_array_equal(function(array, array[key], 0), expected)


def test_shapes_that_do_not_fit_are_errors():
    x, y, i = tensor.dmatrix(), tensor.dvector(), tensor.lscalar()
    for update in (tensor.set_subtensor, tensor.inc_subtensor):
        function = theano.function([x, y, i], update(x[i], y))
        for _ in range(2):
            with pytest.raises(ValueError, match="broadcast"):
                function(np.zeros((2, 3)), np.ones(2), 0)
            with pytest.raises(IndexError, match="index out of bounds"):
                function(np.zeros((2, 3)), np.ones(3), 2)
            np.testing.assert_array_equal(
                function(np.zeros((2, 3)), np.ones(3), 1), [[0] * 3, [1] * 3]
            )
    n = tensor.lscalar()
    function = theano.function([y, n], tensor.alloc(y, 2, n))
    with pytest.raises(ValueError, match="broadcast"):
        function(np.ones(2), 3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_alloc_repeats_values(dtype):
    scalar = tensor.TensorType(dtype, ())("scalar")
    row = tensor.TensorType(dtype, (True, False))("row")
    n, m = tensor.lscalars("n", "m")
    outputs = [tensor.alloc(scalar, n, m, 2), tensor.alloc(row, 2, n, m), tensor.alloc(scalar)]
    function = theano.function([scalar, row, n, m], [theano.Out(o, borrow=True) for o in outputs])
    calls = []
    for rows, columns in ((2, 3), (2, 3), (0, 3), (3, 0), (30, 40), (3, 1), (1, 1)):
        values = np.arange(columns).astype(dtype)[None]
        calls.append(
            (values, rows, columns, function(np.dtype(dtype).type(1), values, rows, columns))
        )
    for values, rows, columns, (first, second, third) in calls:
        assert first.shape == (rows, columns, 2)
        assert (first == 1).all()
        np.testing.assert_array_equal(second, np.broadcast_to(values, (2, rows, columns)))
        assert third == 1


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_output_array_of_the_same_shape_is_reused(order):
    x = tensor.dmatrix()
    function = theano.function([x], theano.Out(tensor.sqrt(x), borrow=True))
    (node,) = function.maker.fgraph.apply_nodes
    storage = function.fn.storage_map[node.outputs[0]]
    for shape in ((2, 3), (2, 3), (3, 2), (1, 4), (0, 4), (4, 0), (5, 5)):
        values = np.asarray(np.random.RandomState(0).uniform(size=shape), order=order)
        function.input_storage[0].storage[0] = values
        before = storage[0]
        function.fn()
        np.testing.assert_array_equal(storage[0], np.sqrt(values))
        same = before is not None and before.shape == shape
        assert not same or storage[0] is before


@pytest.mark.parametrize("of_set", [False, True])
def test_arrays_whose_elements_share_memory_are_copied(of_set):
    """The result equals the result for a copy, in which each element has its own memory."""
    x, i = tensor.dmatrix(), tensor.lscalar()
    update = tensor.set_subtensor if of_set else tensor.inc_subtensor
    function = theano.function([x, i], [update(x[i:], 7.0), update(x[i:, 0], x[:, 1][i:])])
    memory = np.arange(8.0)
    for strides in ((8, 8), (0, 8), (8, 0), (0, 0), (16, 8)):
        array = np.lib.stride_tricks.as_strided(memory, (3, 3), strides)
        for result, key, value in zip(
            function(array, 1), (np.s_[1:], np.s_[1:, 0]), (7.0, array[1:, 1].copy()), strict=True
        ):
            expected = array.copy()
            expected[key] = value if of_set else expected[key] + value
            np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(memory, np.arange(8.0))
