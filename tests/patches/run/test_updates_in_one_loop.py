"""run/updates-in-one-loop.patch computes the updates of a training step in one Elemwise.

Without the patch, several Elemwise nodes compute the updates of each parameter. The patch must not
change the values.
"""

from collections import OrderedDict

import numpy as np
import pytest
import theano
from theano import tensor as tt

# The mode in which several Elemwise nodes compute the updates.
APART = theano.compile.get_default_mode().excluding("updates_fusion")
SHAPE = 5, 7


def make_shared(seed, shape=SHAPE, dtype="float64"):
    """Return a shared variable with random values from 0.5 to 2."""
    return theano.shared(np.random.RandomState(seed).uniform(0.5, 2, shape).astype(dtype))


def rmsprop(parameter, gradient):
    square, mean, delta = (make_shared(seed, parameter.get_value().shape) for seed in (1, 2, 3))
    clipped = tt.clip(gradient, -1, 1)
    new_square = 0.95 * square + 0.05 * tt.sqr(clipped)
    new_mean = 0.95 * mean + 0.05 * clipped
    new_delta = 0.9 * delta - 0.01 * clipped / tt.sqrt(new_square + tt.sqr(new_mean) + 1e-4)
    updates = [(square, new_square), (mean, new_mean), (delta, new_delta)]
    return OrderedDict([*updates, (parameter, parameter + new_delta)])


def adam(parameter, gradient):
    step, first, second = theano.shared(0.0), make_shared(4), make_shared(5)
    new_step = step + 1
    new_first, new_second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
    rate = 0.01 * tt.sqrt(1 - 0.999**new_step) / (1 - 0.9**new_step)
    new = parameter - rate * new_first / (tt.sqrt(new_second) + 1e-8)
    updates = [(step, new_step), (first, new_first), (second, new_second), (parameter, new)]
    return OrderedDict(updates)


def momentum(parameter, gradient):
    velocity = make_shared(6)
    new = 0.9 * velocity - 0.1 * gradient
    return OrderedDict([(velocity, new), (parameter, parameter + 0.9 * new - 0.1 * gradient)])


def find_elemwise_nodes(function):
    """Return the Elemwise nodes whose outputs have at least one dimension."""
    return [
        node
        for node in function.maker.fgraph.toposort()
        if isinstance(node.op, tt.Elemwise) and node.outputs[0].ndim
    ]


def train(make, mode, calls=3):
    """Train one parameter; return the function, and the values of all updated variables.

    Args:
        make: a function that returns the updates for a parameter and its gradient.
        mode: the mode of the function.
        calls: the number of training steps.
    """
    x = tt.dmatrix()
    parameter = make_shared(0)
    updates = make(parameter, tt.dot(x, tt.ones((SHAPE[0], SHAPE[1]))) + parameter)
    function = theano.function([x], parameter.sum(), updates=updates, mode=mode)
    for _ in range(calls):
        function(np.random.RandomState(7).uniform(-1, 1, (SHAPE[0], SHAPE[0])))
    return function, [variable.get_value() for variable in updates]


@pytest.mark.parametrize("make", [rmsprop, adam, momentum])
def test_one_loop_computes_all_updates(make):
    function, values = train(make, None)
    _, expected = train(make, APART)
    (node,) = [node for node in find_elemwise_nodes(function) if len(node.outputs) > 1]
    updated = {i for i, _ in enumerate(function.maker.fgraph.outputs)} - {0}
    # The loop computes all updates in-place, except Adam's scalar, the number of steps.
    assert len(node.outputs) == len(updated) - (make is adam)
    for output, overwritten in node.op.inplace_pattern.items():
        (index,) = [i for client, i in node.outputs[output].clients if client == "output"]
        fgraph = function.maker.fgraph
        assert node.inputs[overwritten] is fgraph.inputs[fgraph.update_mapping[index]]
    assert len(node.op.inplace_pattern) == len(node.outputs)
    for actual, other in zip(values, expected, strict=True):
        np.testing.assert_allclose(actual, other, rtol=1e-14)


@pytest.mark.parametrize("make", [rmsprop, adam, momentum])
def test_a_large_graph_has_as_many_in_place_updates(make, monkeypatch):
    """In a large graph, Theano validates ten changes at a time; as many updates are in-place."""
    small, _ = train(make, None)
    monkeypatch.setattr(theano.config.tensor, "insert_inplace_optimizer_validate_nb", 10)
    large, _ = train(make, None)
    in_place = [
        [
            len(node.op.inplace_pattern)
            for node in find_elemwise_nodes(function)
            if len(node.outputs) > 1
        ]
        for function in (small, large)
    ]
    assert in_place[0] == in_place[1] != [0]


def test_an_input_is_read_before_it_is_overwritten():
    """Three updates have correct values although each reads variables that other updates change."""
    a, b, c = (make_shared(seed) for seed in range(3))
    updates = [(a, a * b + c), (b, b - a), (c, c / a + b * 2)]
    values = [variable.get_value() for variable in (a, b, c)]
    function = theano.function([], a.sum(), updates=updates)
    (node,) = [node for node in find_elemwise_nodes(function) if len(node.outputs) > 1]
    assert len(node.op.inplace_pattern) == 3
    for _ in range(3):
        function()
        x, y, z = values
        values = [x * y + z, y - x, z / x + y * 2]
    for variable, expected in zip((a, b, c), values, strict=True):
        np.testing.assert_allclose(variable.get_value(), expected, rtol=1e-13)


def test_an_update_that_needs_the_sum_of_another_has_the_correct_value():
    """This update cannot be computed in the same loop: the sum needs all elements first."""
    a, b = make_shared(0), make_shared(1)
    new = a * b + a
    updates = [(a, new), (b, b * new / new.sum())]
    x, y = a.get_value(), b.get_value()
    theano.function([], [], updates=updates)()
    new = x * y + x
    np.testing.assert_allclose(a.get_value(), new, rtol=1e-14)
    np.testing.assert_allclose(b.get_value(), y * new / new.sum(), rtol=1e-14)


def test_updates_of_different_shapes_are_not_in_one_loop():
    """A row that is broadcast to a matrix keeps its shape. Shapes that do not fit are an error."""
    rows, matrix = (
        theano.shared(np.ones((1, 4)), broadcastable=(True, False)),
        make_shared(0, (3, 4)),
    )
    updates = [(rows, rows * 2), (matrix, matrix * rows)]
    function = theano.function([], [], updates=updates)
    function()
    assert rows.get_value().shape == (1, 4)
    assert matrix.get_value().shape == (3, 4)
    assert all(len(node.outputs) == 1 for node in find_elemwise_nodes(function))
    a, b = make_shared(0, (3, 4)), make_shared(1, (2, 4))
    function = theano.function([], [], updates=[(a, a * b), (b, b + a)])
    with pytest.raises(ValueError, match=r"[Dd]imension"):
        function()


@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (33,), (3, 5, 2)])
def test_updates_of_any_shape_and_layout_have_correct_values(shape, layout):
    x = tt.TensorType("float64", [False] * len(shape))()
    parameter = make_shared(0, shape)
    value = layout(np.random.RandomState(3).uniform(-2, 2, shape))
    states = []
    for mode in (None, APART):
        parameter = make_shared(0, shape)
        parameter.set_value(layout(parameter.get_value()))
        updates = rmsprop(parameter, x + parameter)
        theano.function([x], [], updates=updates, mode=mode)(value)
        states.append([variable.get_value() for variable in updates])
    for actual, other in zip(*states, strict=True):
        np.testing.assert_allclose(actual, other, rtol=1e-14)


def test_updates_of_different_types_are_stored_in_their_own_types():
    a, b = make_shared(0, dtype="float32"), make_shared(1)
    x = tt.fmatrix()
    new = a - np.float32(0.1) * x
    updates = [(a, new), (b, b + tt.sqr(new))]
    value = np.random.RandomState(2).uniform(-1, 1, SHAPE).astype("float32")
    function = theano.function([x], [], updates=updates, allow_input_downcast=True)
    first, second = a.get_value(), b.get_value()
    function(value)
    assert (a.get_value().dtype, b.get_value().dtype) == ("float32", "float64")
    new = (first - np.float32(0.1) * value).astype("float32")
    np.testing.assert_allclose(a.get_value(), new, rtol=1e-6)
    np.testing.assert_allclose(b.get_value(), second + np.square(new), rtol=1e-5)


def test_a_computation_with_many_repeated_operations_is_not_fused():
    """The graph has twelve steps of Newton's method; each reads the last step three times."""
    a, b = make_shared(0), make_shared(1)
    root = a
    for _ in range(12):
        root = root * (1.5 - 0.5 * b * root * root)
    function = theano.function([], [], updates=[(a, root), (b, b * root)])
    assert all(len(node.outputs) == 1 for node in find_elemwise_nodes(function))
    x, y = a.get_value(), b.get_value()
    function()
    for _ in range(12):
        x = x * (1.5 - 0.5 * y * x * x)
    np.testing.assert_allclose(a.get_value(), x, rtol=1e-9)
    np.testing.assert_allclose(b.get_value(), y * x, rtol=1e-9)
