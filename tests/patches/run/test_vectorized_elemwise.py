"""run/vectorized-loops.patch: g++ vectorizes fused elementwise loops; values stay the same.

Without the patch, g++ does not vectorize loops with many arrays, or loops over broadcast or sliced
matrices: the first test finds no vectorized loop in the generated code.
"""

import itertools

import numpy as np
import pytest
import theano
from theano import tensor
from theano.gof.cc import CLinker

MANY = 12


@pytest.mark.parametrize(("operand", "factor"), [("vector", "vector"), ("matrix", "row")])
def test_loops_with_many_arrays_are_vectorized(vectorized_lines, operand, factor):
    assert vectorized_lines(
        f"""
        import theano
        from theano import tensor
        inputs, factor = [tensor.{operand}() for _ in range({MANY})], tensor.{factor}()
        theano.function([*inputs, factor], sum(tensor.sqrt(x * factor) for x in inputs))
        """,
    )


def test_long_tasks_have_no_vectorized_epilogue(vectorized_lines):
    """The loop over the elements after the last whole vector is not vectorized.

    A vectorized epilogue would double the time of g++.
    """
    result = vectorized_lines(
        """
        import theano
        from theano import tensor
        from theano.tensor.loops_cgen import LONG_TASK
        x, y = tensor.dvectors("x", "y")
        z = x
        for i in range(LONG_TASK):
            z = z * y if i % 2 else z + x
        function = theano.function([x, y], z)
        (node,) = function.maker.fgraph.apply_nodes
        assert "<math.h>" not in node.op.c_linker(node, []).get_src_code()
        """,
    )
    assert len(result) == 1


# Maps a name to an op, its NumPy function and its number of operands. C code uses conditionals.
CHOICES = {
    "maximum": (tensor.maximum, np.maximum, 2),
    "minimum": (tensor.minimum, np.minimum, 2),
    "clip": (lambda x: tensor.clip(x, -1, 1), lambda x: np.clip(x, -1, 1), 1),
    "sgn": (tensor.sgn, np.sign, 1),
}


@pytest.mark.parametrize("name", CHOICES)
def test_conditionals_are_vectorized(vectorized_lines, name):
    arguments = {"clip": "x, -1, 1", "sgn": "x"}.get(name, "x, y")
    assert vectorized_lines(
        f"""
        import theano
        from theano import tensor
        x, y = tensor.dvectors("x", "y")
        theano.function([x, y], tensor.{name}({arguments}), on_unused_input="ignore")
        """,
    )


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_conditionals_have_correct_values(name, dtype):
    """Results equal NumPy's for nan, zeros and infinities, in-place and in a new array."""
    make, expected, count = CHOICES[name]
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 0.5, -0.5, 3, -3]
    pairs = np.array(list(itertools.product(special, special)), dtype).T
    variables = [tensor.vector(dtype=dtype) for _ in range(count)]
    values = pairs[:count]
    results = theano.function(variables, make(*variables))(*values)
    np.testing.assert_array_equal(results, expected(*values))
    inputs = [theano.In(variable, mutable=True) for variable in variables]
    copies = [value.copy() for value in values]
    results = theano.function(inputs, make(*[variable + 0 for variable in variables]))(*copies)
    np.testing.assert_array_equal(results, expected(*values))


def test_clip_to_exchanged_bounds_prefers_the_first_bound():
    """A number that is less than the first bound becomes the first bound, also in-place."""
    x = tensor.dvector()
    function = theano.function([x], tensor.clip(x * 1.0 + 1, 10, 3))
    np.testing.assert_array_equal(function([4, 8, 19, np.nan]), [10, 10, 3, np.nan])


def make_layouts(shape):
    """Yield arrays of a shape with the same values and different strides."""
    rows, columns = shape
    values = np.random.RandomState(0).uniform(0.5, 2, shape)
    yield values
    yield np.asfortranarray(values)
    for base, index in (
        (np.ones((rows, 3 * columns)), np.s_[:, columns : 2 * columns]),
        (np.ones((rows, 2 * columns)), np.s_[:, ::-2]),
        (np.ones((2 * rows, columns)), np.s_[::-2]),
    ):
        base[index] = values
        yield base[index]


def test_softmax_is_vectorized(vectorized_lines):
    assert vectorized_lines(
        """
        import theano
        x = theano.tensor.dmatrix()
        theano.function([x], theano.tensor.nnet.softmax(x))
        """,
        file="theano_softmax.h",
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_is_correct_for_rows_of_any_length(dtype):
    """Rows may be strided and contain -inf. A nan makes its whole row nan."""
    x = tensor.matrix(dtype=dtype)
    compiled = theano.function([x], tensor.nnet.softmax(x))
    for columns in range(1, 70):
        value = np.random.RandomState(columns).normal(0, 9, (5, columns)).astype(dtype)
        value[1, columns // 2] = np.nan
        value[2, 0] = np.nan
        value[3, -1] = -np.inf
        wide = np.repeat(value, 2, axis=1)[:, ::2]
        for rows in (value, value[:, ::-1], np.asfortranarray(value), wide):
            with np.errstate(invalid="ignore"):
                powers = np.exp(rows - rows.max(1, keepdims=True).astype("float64"))
            expected = powers / powers.sum(1, keepdims=True)
            assert np.allclose(
                compiled(rows), expected, 50 * np.finfo(dtype).eps, np.finfo(dtype).tiny, True
            )


@pytest.mark.parametrize("openmp", [False, True])
@pytest.mark.parametrize("shape", [(5, 70), (70, 5), (1, 9), (9, 1), (0, 4), (4, 0)])
def test_every_layout_has_the_same_values(shape, openmp):
    x, y = tensor.dmatrices("x", "y")
    row, column, scalar = tensor.drow("row"), tensor.dcol("column"), tensor.dscalar("scalar")
    with theano.change_flags(openmp=openmp, openmp_elemwise_minsize=0):
        function = theano.function(
            [x, y, row, column, scalar],
            [tensor.sqrt(x * row + y) + column * scalar, x / y + scalar, y > column],
        )
    b, c, s = np.linspace(1, 2, shape[1])[None], np.linspace(3, 4, shape[0])[:, None], 0.5
    for left in make_layouts(shape):
        for right in make_layouts(shape):
            first, second, third = function(left, right, b, c, s)
            np.testing.assert_allclose(first, np.sqrt(left * b + right) + c * s, rtol=1e-14)
            np.testing.assert_allclose(second, left / right + s, rtol=1e-14)
            np.testing.assert_array_equal(third, right > c)


def test_results_are_correct_for_every_order_of_four_dimensions():
    """The loops are in the order of the output's strides, and adjacent dimensions are merged."""
    x, y = tensor.dtensor4("x"), tensor.TensorType("float64", (False, True, False, True))("y")
    function = theano.function([x, y], [x * y, x - x[:, ::-1]])
    values = np.random.RandomState(0).uniform(0.5, 2, (2, 3, 4, 5))
    for order in itertools.permutations(range(4)):
        left = values.transpose(order)
        right = left[:, :1, :, :1]
        first, second = function(left, right)
        np.testing.assert_array_equal(first, left * right)
        np.testing.assert_array_equal(second, left - left[:, ::-1])


def test_a_module_has_one_function_of_loops():
    """The function contains two loops: for contiguous arrays, and for all others."""
    x, y = tensor.dmatrices("x", "y")
    (node,) = theano.function([x, y], tensor.tanh(x * y)).maker.fgraph.apply_nodes
    graph = theano.gof.FunctionGraph(node.inputs, node.outputs)
    assert CLinker().accept(graph).get_src_code().count("tanh(") == 2


@pytest.mark.parametrize("shape", [(70,), (5, 70)])
def test_an_in_place_update_has_correct_values(shape):
    values = np.random.RandomState(0).uniform(0.5, 2, shape)
    state = theano.shared(values)
    theano.function([], updates=[(state, tensor.sqrt(state) + state)])()
    np.testing.assert_allclose(state.get_value(), np.sqrt(values) + values, rtol=1e-14)


@pytest.mark.parametrize("ndim", [1, 2])
@pytest.mark.parametrize("fused", [False, True])
def test_an_error_ends_the_loop_and_the_next_call_works(ndim, fused):
    x, y = (tensor.TensorType("int64", (False,) * ndim)() for _ in range(2))
    function = theano.function([x, y], x // y + x if fused else x // y)
    shape = (3,) * ndim
    with pytest.raises(ZeroDivisionError):
        function(np.ones(shape, "int64"), np.zeros(shape, "int64"))
    assert (function(np.full(shape, 7), np.full(shape, -2)) == (3 if fused else -4)).all()


@pytest.mark.parametrize("shift", [-1, 1, 4])
def test_inputs_that_share_memory_are_read_before_they_are_overwritten(shift):
    """The result is correct if an input overlaps the overwritten input, at any distance."""
    x, y = tensor.dvectors("x", "y")
    function = theano.function(
        [theano.In(x, mutable=True, borrow=True), theano.In(y, borrow=True)], x * 2 + y
    )
    (node,) = function.maker.fgraph.apply_nodes
    assert node.op.inplace_pattern
    memory = np.random.RandomState(0).uniform(size=70)
    first, second = memory[4:-4], memory[4 + shift : len(memory) - 4 + shift]
    expected = first * 2 + second
    np.testing.assert_array_equal(function(first, second), expected)


def test_a_state_can_be_updated_by_a_view_of_itself():
    """The updates add the state's elements in shifted and reversed order."""
    values = np.random.RandomState(0).uniform(size=70)
    state = theano.shared(values)
    shifted = tensor.concatenate([state[1:], state[:1]])
    theano.function([], updates=[(state, state * 2 + shifted[::-1])])()
    theano.function([], updates=[(state, state + state[::-1])])()
    expected = values * 2 + np.roll(values, -1)[::-1]
    np.testing.assert_array_equal(state.get_value(), expected + expected[::-1])
