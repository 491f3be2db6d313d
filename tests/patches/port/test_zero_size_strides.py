"""port/current-numpy.patch accepts the stride 0 of empty arrays, which numpy 1.23 introduced.

Without the patch, Gemm, Dot22, and BatchedDot of a nonempty batch raise "some matrix has no unit
stride" for empty matrices.
"""

import numpy as np
import pytest
import theano
from theano import tensor

SHAPES = [(0, 3), (3, 0), (0, 0), (1, 0), (0, 1)]


def ops(function):
    return {type(node.op).__name__ for node in function.maker.fgraph.toposort()}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_zero_size_matrices(shape, order):
    x, y, z = tensor.dmatrices("x", "y", "z")
    dot22 = theano.function([x, y], tensor.dot(x, y))
    gemm = theano.function([x, y, z], 2 * z + 3 * tensor.dot(x, y))
    assert ops(dot22) == {"Dot22"}
    assert "Gemm" in ops(gemm)
    left, right = np.ones(shape, order=order), np.ones(shape[::-1], order=order)
    square = np.ones((shape[0], shape[0]))
    np.testing.assert_array_equal(dot22(left, right), left @ right)
    np.testing.assert_array_equal(gemm(left, right, square), 2 * square + 3 * (left @ right))


@pytest.mark.parametrize("batch", [0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_batches_of_zero_size_matrices(shape, batch):
    x, y = tensor.dtensor3("x"), tensor.dtensor3("y")
    batched_dot = theano.function([x, y], tensor.batched_dot(x, y))
    assert "BatchedDot" in ops(batched_dot)
    left, right = np.ones((batch, *shape)), np.ones((batch, *shape[::-1]))
    np.testing.assert_array_equal(batched_dot(left, right), left @ right)


@pytest.mark.parametrize("shape", SHAPES)
def test_matrix_vector_products_of_zero_size_matrices(shape):
    """Gemv and Ger need no patch; this test detects a change."""
    a, x, y = tensor.dmatrix("a"), tensor.dvector("x"), tensor.dvector("y")
    gemv = theano.function([a, x, y], y + tensor.dot(a, x))
    ger = theano.function([a, x, y], a + tensor.outer(y, x))
    matrix, row, column = np.ones(shape), np.ones(shape[1]), np.ones(shape[0])
    np.testing.assert_array_equal(gemv(matrix, row, column), column + matrix @ row)
    assert ger(matrix, row, column).shape == shape


@pytest.mark.parametrize("strides", [(0, 8), (8, 0), (0, 0), (0, 24)])
def test_arrays_with_elements_that_have_a_stride_of_zero(strides):
    """BLAS would read the same row repeatedly, so that these arrays are copied first."""
    x, y, z = tensor.dmatrices("x", "y", "z")
    outputs = [tensor.dot(x, y), 2 * z + 3 * tensor.dot(x, y), z + tensor.dot(x.T, y.T)]
    batched = tensor.batched_dot(tensor.stack([x, y]), tensor.stack([y, x]))
    function = theano.function([x, y, z], [*outputs, batched])
    left = np.lib.stride_tricks.as_strided(np.arange(1.0, 10), (3, 3), strides)
    right, square = np.arange(9.0).reshape(3, 3), np.ones((3, 3))
    for one, other in ((left, right), (right, left), (left, left)):
        expected = one @ other, 2 * square + 3 * (one @ other), square + one.T @ other.T
        results = function(one, other, square)
        for result, value in zip(results, expected, strict=False):
            np.testing.assert_array_equal(result, value)
        np.testing.assert_array_equal(results[3], [one @ other, other @ one])
