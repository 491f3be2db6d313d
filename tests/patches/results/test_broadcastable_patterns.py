"""results/broadcastable-patterns.patch: a broadcastable dimension always has length 1.

Without the patch, x[:100:-1] of a broadcastable x is declared broadcastable too, but it is empty.
The optimization of a reshape with an unknown pattern logs an error.
"""

import itertools

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.gof.opt import out2in
from theano.ifelse import ifelse
from theano.tensor.opt_uncanonicalize import local_reshape_dimshuffle

X = tt.row()
ENDS = (None, 0, 1, -1, -2, 5)


@pytest.mark.parametrize("step", [None, 1, 2, -1, -3])
def test_slices_of_a_broadcastable_dimension_equal_numpys(step):
    slices = [slice(start, stop, step) for start, stop in itertools.product(ENDS, ENDS)]
    function = theano.function([X], [X[index] * 2 for index in slices])
    x = np.arange(3).reshape(1, 3).astype(X.dtype)
    for result, index in zip(function(x), slices, strict=True):
        assert np.array_equal(result, x[index] * 2)


@pytest.mark.parametrize("step", [-2, 2])
def test_a_slice_with_a_symbolic_step_equals_numpys(step):
    by = tt.lscalar()
    function = theano.function([X, by], X[0:2:by] * 2)
    x = np.arange(3).reshape(1, 3).astype(X.dtype)
    assert np.array_equal(function(x, step), x[0:2:step] * 2)


def test_a_reshape_that_lost_its_pattern_is_optimized_without_an_error():
    matrix, shape = tt.matrix(), tt.lvector()
    shuffled = matrix.dimshuffle("x", 0, "x", 1)
    reshaped = tt.patternbroadcast(tt.reshape(shuffled, (1, 6)), (True, False))
    node = (
        reshaped.owner
        if isinstance(reshaped.owner.op, tt.Reshape)
        else reshaped.owner.inputs[0].owner
    )
    graph = theano.gof.FunctionGraph([matrix, shape], [node.outputs[0]], clone=False)
    graph.change_input(node, 1, shape)
    with theano.configparser.change_flags(on_opt_error="raise"):
        out2in(local_reshape_dimshuffle).optimize(graph)
    assert graph.outputs[0].broadcastable == (True, False)


@pytest.mark.parametrize("ends", ["[:0]", "[1:]", "[:-1]", "[::-1]", "[:1]"])
@pytest.mark.parametrize("pattern", [(True,), (True, True), (True, False)])
def test_slices_of_elementwise_results_equal_unoptimized_results(pattern, ends):
    x = tt.TensorType("float64", pattern)("x")
    scanned, _ = theano.scan(lambda element: element * 2, sequences=x)
    outputs = [eval(f"v{ends}", {"v": variable}) for variable in (x + x, x * 2, scanned)]
    value = np.ones([1 if broadcastable else 3 for broadcastable in pattern])
    modes = None, theano.Mode("py", None)
    actual, expected = (theano.function([x], outputs, mode=mode)(value) for mode in modes)
    for result, unoptimized in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(result, unoptimized)


def test_dropped_dimensions_may_be_sliced():
    x = tt.TensorType("float64", (True, True))("x")
    output = tt.dot(x[:, ::-1], x)
    with theano.configparser.change_flags(on_opt_error="raise"):
        assert theano.function([x], output)([[3.0]]) == [[9]]


def test_a_slice_of_constants_is_folded():
    x, rows = tt.matrix(), tt.lvector()
    with theano.configparser.change_flags(on_opt_error="raise"):
        function = theano.function([x, rows], [x[rows, ::2], x[rows, 1:3], x[rows, :2:1]])
    value = np.arange(8).reshape(2, 4).astype(x.dtype)
    for actual, expected in zip(function(value, [1]), ([[4, 6]], [[5, 6]], [[4, 5]]), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("pattern", [(True, True, False), (False,) * 3])
def test_a_new_dimension_keeps_other_dimensions(pattern):
    x = tt.TensorType("float64", pattern)("x")
    value = np.ones([1 if broadcastable else 3 for broadcastable in pattern])
    outputs = [x[None], x[:, None], x[:, None, ::-1], x[0, None]]
    expected = [value[None], value[:, None], value[:, None, ::-1], value[0, None]]
    for actual, wanted in zip(theano.function([x], outputs)(value), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("axis", [0, -2, tt.lscalar("axis")])
def test_parts_of_a_split_may_be_empty(axis):
    x, lengths = tt.row(), tt.lvector()
    axes = [axis] if isinstance(axis, tt.TensorVariable) else []
    parts = tt.Split(2)(x, axis, lengths)
    outputs = [part * 2 for part in parts] + [tt.grad(parts[0].sum(), x)]
    function = theano.function([x, lengths, *axes], outputs)
    value = np.ones((1, 3), x.dtype)
    for sizes in ([0, 1], [1, 0]):
        first, second, gradient = function(value, sizes, *(0 for _ in axes))
        assert [len(first), len(second)] == sizes
        assert np.array_equal(gradient, value * sizes[0])


def test_parts_of_known_length_keep_their_pattern():
    x, lengths = tt.row(), tt.lvector()
    assert [part.broadcastable[0] for part in tt.Split(2)(x, 0, [0, 1])] == [False, True]
    assert [part.broadcastable[0] for part in tt.Split(2)(x, 1, lengths)] == [True, True]
    assert tt.Split(1)(x, 0, lengths).broadcastable == x.broadcastable


COLUMN = tt.col("column")
ONE = tt.TensorType("float64", (True, True))("one")


@pytest.mark.parametrize(
    ("variable", "index", "ndim"),
    [(COLUMN, np.s_[:, None], 2), (ONE, np.s_[None], 1), (ONE, np.s_[0, None], 1)],
)
def test_newaxis_drops_broadcastable_dimensions(variable, index, ndim):
    """None drops a broadcastable dimension after the last index, as in Theano 1.0.5.

    nematus and its descendants rely on this when they index masks with [:, None].
    """
    with pytest.warns(UserWarning, match="numpy_newaxis") as warnings:
        indexed = variable[index]
    assert indexed.ndim == ndim
    assert [warning.filename for warning in warnings] == [__file__]
    value = np.full((3 if variable is COLUMN else 1, 1), 7.0)
    assert indexed.eval({variable: value}).shape == value[index].shape[:ndim]


@pytest.mark.parametrize(("variable", "index"), [(COLUMN, np.s_[:, None]), (ONE, np.s_[None])])
def test_the_flag_numpy_newaxis_keeps_broadcastable_dimensions(variable, index):
    value = np.ones((3 if variable is COLUMN else 1, 1))
    with theano.configparser.change_flags(numpy_newaxis=True):
        indexed = variable[index]
    assert np.array_equal(indexed.eval({variable: value}), value[index])


@pytest.mark.parametrize("index", [np.s_[:, None], np.s_[None], np.s_[0, None], np.s_[..., None]])
def test_newaxis_keeps_other_dimensions(index):
    """An index with None keeps all dimensions; Theano 1.0.5 accepts only [..., None]."""
    tensor = tt.TensorType("float64", (False, False, True))("tensor")
    value = np.arange(6.0).reshape(2, 3, 1)
    assert np.array_equal(tensor[index].eval({tensor: value}), value[index])


@pytest.mark.parametrize("swapped", [False, True])
def test_branches_of_ifelse_may_differ_in_their_pattern(swapped):
    """The slice of a row is a matrix: it can be empty."""
    condition, branches = tt.iscalar(), [X * 2, X[:1:-1]]
    if swapped:
        branches.reverse()
    chosen = ifelse(condition, *branches)
    assert chosen.broadcastable == (False, False)
    x = np.arange(3).reshape(1, 3).astype(X.dtype)
    expected = [x * 2, x[:1:-1]]
    gradients = [np.full_like(x, 2), np.zeros_like(x)]
    function = theano.function([condition, X], [chosen, tt.grad(chosen.sum(), X)])
    for value in (0, 1):
        result, gradient = function(value, x)
        index = value == swapped
        assert np.array_equal(result, expected[index])
        assert np.array_equal(gradient, gradients[index])
    with pytest.raises(TypeError, match="identical types"):
        ifelse(condition, tt.dmatrix(), tt.fmatrix())
