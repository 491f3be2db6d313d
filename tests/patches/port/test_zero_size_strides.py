"""port/current-numpy.patch accepts empty arrays with a stride of 0, which NumPy 1.23 introduced.

Without the patch, Gemm and Dot22 raise "some matrix has no unit stride" for empty matrices.
BatchedDot raises this error for a batch of empty matrices.
"""

import numpy as np
import pytest
import theano
from theano import tensor

SHAPES = [(0, 3), (3, 0), (0, 0), (1, 0), (0, 1)]


def find_ops(function):
    """Return the names of the ops of a function."""
    return {type(node.op).__name__ for node in function.maker.fgraph.toposort()}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_empty_matrices_equal_numpys(shape, order):
    x, y, z = tensor.dmatrices("x", "y", "z")
    dot22 = theano.function([x, y], tensor.dot(x, y))
    gemm = theano.function([x, y, z], 2 * z + 3 * tensor.dot(x, y))
    assert find_ops(dot22) == {"Dot22"}
    assert "Gemm" in find_ops(gemm)
    left, right = np.ones(shape, order=order), np.ones(shape[::-1], order=order)
    square = np.ones((shape[0], shape[0]))
    np.testing.assert_array_equal(dot22(left, right), left @ right)
    np.testing.assert_array_equal(gemm(left, right, square), 2 * square + 3 * (left @ right))


@pytest.mark.parametrize("batch", [0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_batched_products_of_empty_matrices_equal_numpys(shape, batch):
    x, y = tensor.dtensor3("x"), tensor.dtensor3("y")
    batched_dot = theano.function([x, y], tensor.batched_dot(x, y))
    assert "BatchedDot" in find_ops(batched_dot)
    left, right = np.ones((batch, *shape)), np.ones((batch, *shape[::-1]))
    np.testing.assert_array_equal(batched_dot(left, right), left @ right)


@pytest.mark.parametrize("shape", SHAPES)
def test_gemv_and_ger_accept_empty_matrices(shape):
    """Gemv and Ger accept empty matrices without the patch too. The test guards this property."""
    a, x, y = tensor.dmatrix("a"), tensor.dvector("x"), tensor.dvector("y")
    gemv = theano.function([a, x, y], y + tensor.dot(a, x))
    ger = theano.function([a, x, y], a + tensor.outer(y, x))
    matrix, row, column = np.ones(shape), np.ones(shape[1]), np.ones(shape[0])
    np.testing.assert_array_equal(gemv(matrix, row, column), column + matrix @ row)
    assert ger(matrix, row, column).shape == shape


@pytest.mark.parametrize("strides", [(0, 8), (8, 0), (0, 0), (0, 24)])
def test_products_of_nonempty_arrays_with_a_stride_of_0_equal_numpys(strides):
    """Theano copies these arrays before it calls BLAS, which would read wrong elements."""
    x, y, z = tensor.dmatrices("x", "y", "z")
    outputs = [tensor.dot(x, y), 2 * z + 3 * tensor.dot(x, y), z + tensor.dot(x.T, y.T)]
    batched = tensor.batched_dot(tensor.stack([x, y]), tensor.stack([y, x]))
    function = theano.function([x, y, z], [*outputs, batched])
    left = np.lib.stride_tricks.as_strided(np.arange(1.0, 10), (3, 3), strides)
    right, square = np.arange(9.0).reshape(3, 3), np.ones((3, 3))
    for a, b in ((left, right), (right, left), (left, left)):
        expected = a @ b, 2 * square + 3 * (a @ b), square + a.T @ b.T
        results = function(a, b, square)
        for result, value in zip(results, expected, strict=False):
            np.testing.assert_array_equal(result, value)
        np.testing.assert_array_equal(results[3], [a @ b, b @ a])
