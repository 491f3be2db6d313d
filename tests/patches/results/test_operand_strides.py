"""results/operand-strides.patch: products and sparse ops read each operand by its strides.

Without the patch, the C code of sparse ops reads dense operands as if they were in C order. It
writes results in the operand's memory order, ignores the strides of the sparse data, and reads
integers as doubles. BLAS rejects a matrix whose rows overlap, and the result is uninitialized.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse
import theano
from theano import sparse
from theano import tensor as tt

PYTHON = theano.Mode("py", None)
LAYOUTS = {
    "C": lambda array: array,
    "Fortran": np.asfortranarray,
    "columns reversed": lambda array: array[..., ::-1].copy()[..., ::-1],
    "rows reversed": lambda array: array[::-1].copy()[::-1],
    "every other column": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
}
OPS = {
    "add": (sparse.add, 2),
    "mul": (sparse.mul, 2),
    "mul by a vector": (sparse.mul_s_v, 1),
    "add a vector": (sparse.structured_add_s_v, 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["csc", "csr"])
@pytest.mark.parametrize("name", OPS)
def test_results_are_correct_for_dense_operands_of_any_layout(name, kind, layout):
    op, ndim = OPS[name]
    matrix = sparse.matrix(kind, dtype="float64")
    dense = tt.TensorType("float64", (False,) * ndim)()
    values = scipy.sparse.random(4, 3, 0.7, kind, "float64", np.random.RandomState(1))
    operand = LAYOUTS[layout](np.arange(1.0, 13).reshape(4, 3) if ndim == 2 else np.arange(1.0, 4))
    output = op(matrix, dense)
    actual, expected = (
        theano.function([matrix, dense], output, mode=mode)(values, operand)
        for mode in (None, PYTHON)
    )
    if scipy.sparse.issparse(actual):
        actual, expected = actual.toarray(), expected.toarray()
    np.testing.assert_allclose(actual, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_a_sum_of_a_sparse_and_a_dense_matrix_of_two_types_is_correct(dtype):
    matrix, dense = sparse.csc_matrix(dtype="float32"), tt.matrix(dtype=dtype)
    values = scipy.sparse.random(4, 3, 0.7, "csc", "float32", np.random.RandomState(1))
    operand = np.asfortranarray(np.arange(12).reshape(4, 3).astype(dtype))
    function = theano.function([matrix, dense], sparse.add(matrix, dense))
    np.testing.assert_allclose(function(values, operand), values.toarray() + operand)


@pytest.mark.parametrize("name", OPS)
def test_results_are_correct_for_sparse_data_of_any_stride(name):
    op, ndim = OPS[name]
    data = tt.dvector()
    dense = tt.TensorType("float64", (False,) * ndim)()
    indices, starts = (tt.constant(np.array(row, "int32")) for row in ([0, 1, 2, 0], [0, 2, 4]))
    matrix = sparse.CSR(data[::-1], indices, starts, [2, 3])
    output = op(matrix, dense)
    vector_or_matrix = np.arange(1.0, 7).reshape(2, 3) if ndim == 2 else np.arange(1.0, 4)
    arguments = np.arange(1.0, 5), vector_or_matrix
    actual, expected = (
        theano.function([data, dense], output, mode=mode)(*arguments) for mode in (None, PYTHON)
    )
    if scipy.sparse.issparse(actual):
        actual, expected = actual.toarray(), expected.toarray()
    np.testing.assert_allclose(actual, expected)


@pytest.mark.parametrize("kind", ["csc", "csr"])
def test_an_operand_that_is_too_small_is_an_error(kind):
    matrix, dense = sparse.matrix(kind, dtype="float64"), tt.dmatrix()
    function = theano.function([matrix, dense], sparse.mul(matrix, dense))
    values = scipy.sparse.random(4, 3, 1.0, kind, "float64")
    with pytest.raises(ValueError, match="too few elements"):
        function(values, np.ones((3, 3) if kind == "csc" else (4, 2)))


def test_sampling_dot_of_integers_is_correct():
    one, other = tt.lmatrix(), tt.lmatrix()
    pattern = sparse.csr_matrix(dtype="float64")
    function = theano.function([one, other, pattern], sparse.sampling_dot(one, other, pattern))
    left, right = np.arange(6).reshape(2, 3), np.arange(9).reshape(3, 3)
    result = function(left, right, scipy.sparse.csr_matrix(np.ones((2, 3))))
    np.testing.assert_allclose(result.toarray(), left @ right.T)


@pytest.mark.parametrize("kind", ["columns", "rows", "windows"])
def test_products_of_matrices_with_overlapping_rows_are_correct(kind):
    matrix, vector, other = tt.dmatrix(), tt.dvector(), tt.dmatrix()
    overlapping = {
        "columns": np.broadcast_to(np.arange(1.0, 4)[:, None], (3, 4)),
        "rows": np.broadcast_to(np.arange(1.0, 5), (3, 4)),
        "windows": np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 4),
    }[kind]
    gemv = theano.function([matrix, vector], tt.dot(matrix, vector))
    gemm = theano.function([matrix, other], tt.dot(matrix, other))
    operand = np.arange(8.0).reshape(4, 2)
    np.testing.assert_allclose(gemm(overlapping, operand), overlapping @ operand)
    np.testing.assert_allclose(gemm(operand.T, overlapping.T), operand.T @ overlapping.T)
    np.testing.assert_allclose(gemv(overlapping, operand[:, 1]), overlapping @ operand[:, 1])
    np.testing.assert_allclose(gemv(overlapping.T, operand[:3, 1]), overlapping.T @ operand[:3, 1])


@pytest.mark.parametrize("length", [1, 3])
def test_products_with_a_vector_of_stride_0_are_correct(length):
    matrix, vector = tt.dmatrix(), tt.dvector()
    function = theano.function([matrix, vector], tt.dot(matrix, vector))
    values, operand = np.ones((3, length)), np.broadcast_to(2.0, (length,))
    np.testing.assert_allclose(function(values, operand), values @ operand)


def test_batched_products_of_matrices_with_overlapping_rows_are_correct():
    one, other = tt.dtensor3(), tt.dtensor3()
    function = theano.function([one, other], tt.batched_dot(one, other))
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(9.0), 4).reshape(2, 3, 4)
    values = np.lib.stride_tricks.as_strided(windows.copy(), (2, 3, 4), (8, 8, 8))
    operand = np.arange(16.0).reshape(2, 4, 2)
    np.testing.assert_allclose(function(values, operand), values @ operand)
    transposed = operand.transpose(0, 2, 1), values.transpose(0, 2, 1)
    np.testing.assert_allclose(function(*transposed), transposed[0] @ transposed[1])


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "complex128"])
def test_batched_products_of_types_without_a_blas_are_correct(dtype):
    one, other = tt.tensor3(dtype=dtype), tt.tensor3(dtype=dtype)
    function = theano.function([one, other], tt.batched_dot(one, other))
    values = np.arange(12).reshape(2, 2, 3).astype(dtype), np.ones((2, 3, 2), dtype)
    np.testing.assert_array_equal(function(*values), values[0] @ values[1])
    assert function(values[0][:0], values[1][:0]).shape == (0, 2, 2)


def test_threads_compute_empty_products():
    """Without the patch, the C code of a product reads the dimensions of a freed array."""
    x, y = tt.dmatrices("x", "y")
    left, right = np.ones((1, 3)), np.ones((3, 0))
    functions = [theano.function([x, y], 3 * tt.dot(x, y)) for _ in range(2)]

    def compute(function):
        return {function(left, right).shape for _ in range(2000)}

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(compute, functions)) == [{(1, 0)}] * 2
