"""run/vectorised-loops.patch: g++ vectorizes the loops of CGer, and the values stay the same.

Without the patch, the module of CGer contains no vectorized loop.
"""

import itertools

import numpy as np
import pytest
import theano
from theano import tensor

pytestmark = pytest.mark.skipif(not theano.config.blas.ldflags, reason="CGer needs a BLAS")


def test_loops_are_vectorized(vectorized_lines):
    lines = vectorized_lines(
        """
        import theano
        from theano import tensor
        A, x, y = tensor.dmatrix(), tensor.dvector(), tensor.dvector()
        f = theano.function([A, x, y], A + 0.5 * tensor.outer(x, y))
        assert [type(node.op).__name__ for node in f.maker.fgraph.apply_nodes] == ["CGer"]
        """,
        flags=f"blas.ldflags={theano.config.blas.ldflags}",
        file="theano_ger.h",
    )
    assert len(set(lines)) >= 2


def make_vectors(values):
    """Yield vectors with the same values and different strides."""
    yield values
    yield np.repeat(values, 2)[::2]
    yield np.ascontiguousarray(values[::-1])[::-1]


def make_matrices(values):
    """Yield matrices with the same values and different strides."""
    yield values
    yield np.asfortranarray(values)
    yield np.ascontiguousarray(values[::-1, ::-1])[::-1, ::-1]
    yield np.repeat(values, 2, axis=1)[:, ::2]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(1, 1), (5, 7), (33, 18), (20, 1), (1, 20), (0, 3), (3, 0), (300, 400)]
)
def test_every_layout_has_the_same_values(dtype, shape):
    A, x, y = tensor.matrix(dtype=dtype), tensor.vector(dtype=dtype), tensor.vector(dtype=dtype)
    scale = np.asarray(0.37, dtype)
    function = theano.function([A, x, y], A + scale * tensor.outer(x, y))
    random = np.random.RandomState(0)
    matrix = random.uniform(-1, 1, shape).astype(dtype)
    left, right = (random.uniform(-1, 1, size).astype(dtype) for size in shape)
    results = [
        function(*arrays)
        for arrays in itertools.product(
            make_matrices(matrix), make_vectors(left), make_vectors(right)
        )
    ]
    expected = matrix + scale * np.outer(left, right)
    np.testing.assert_allclose(results[0], expected, rtol=1e-5, atol=1e-6)
    # CGer calls BLAS for 100,000 elements or more. The results of BLAS may depend on the layout.
    if shape != (300, 400):
        for result in results:
            np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_in_place_update_has_right_values(order):
    random = np.random.RandomState(0)
    values = np.asarray(random.uniform(size=(7, 5)), order=order)
    x, y = tensor.dvectors("x", "y")
    state = theano.shared(values)
    function = theano.function([x, y], updates=[(state, state + 0.5 * tensor.outer(x, y))])
    left, right = random.uniform(size=7), random.uniform(size=5)
    for _ in range(2):
        function(left, right)
    np.testing.assert_allclose(state.get_value(), values + np.outer(left, right), rtol=1e-14)


def test_shapes_that_do_not_fit_are_errors():
    A, x, y = tensor.dmatrix(), tensor.dvector(), tensor.dvector()
    function = theano.function([A, x, y], A + 0.5 * tensor.outer(x, y))
    with pytest.raises(ValueError, match=r"A\.shape\[0\] != x\.shape\[0\]"):
        function(np.ones((2, 3)), np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match=r"A\.shape\[1\] != y\.shape\[0\]"):
        function(np.ones((2, 3)), np.ones(2), np.ones(2))


@pytest.mark.parametrize("order", ["C", "F"])
def test_vectors_that_are_parts_of_the_overwritten_matrix_are_read_first(order):
    values = np.asarray(np.random.RandomState(0).uniform(size=(5, 5)), order=order)
    expected = values + 0.5 * np.outer(values[1], values[:, 2])
    state = theano.shared(values.copy(order))
    update = state + 0.5 * tensor.outer(state[1], state[:, 2])
    theano.function([], updates=[(state, update)])()
    np.testing.assert_allclose(state.get_value(), expected, rtol=1e-14)
