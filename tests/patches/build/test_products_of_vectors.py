"""build/kernels-of-products.patch: kernels compute CGemv and CGer instead of the BLAS."""

import functools
import itertools

import numpy as np
import pytest
import theano
from theano import tensor
from theano.tensor import blas
from theano.tensor.linkers.threads import HAS_KERNELS

pytestmark = pytest.mark.skipif(not theano.config.blas.ldflags, reason="CGemv needs a BLAS")
needs_kernels = pytest.mark.skipif(not HAS_KERNELS, reason="the processor has no AVX2")
FLOATS = pytest.mark.parametrize("dtype", ["float32", "float64"])
# Sizes around the numbers of lanes, vectors of a block, and parts.
SIZES = (0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 127, 129, 300)


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


def choose(rng, values):
    """Return one of the given values."""
    values = list(values)
    return values[rng.randint(len(values))]


def compile_gemv(dtype):
    """Return a function of y, alpha, A, x and beta that returns beta y + alpha A x."""
    y, x = tensor.vector(dtype=dtype), tensor.vector(dtype=dtype)
    alpha, beta = tensor.scalar(dtype=dtype), tensor.scalar(dtype=dtype)
    matrix = tensor.matrix(dtype=dtype)
    inputs = [y, alpha, matrix, x, beta]
    function = theano.function(inputs, blas.gemv_no_inplace(*inputs))
    names = [type(node.op).__name__ for node in function.maker.fgraph.apply_nodes]
    assert names == ["CGemv"]
    return function


@FLOATS
def test_products_of_a_matrix_and_a_vector_equal_numpys(dtype):
    gemv = compile_gemv(dtype)
    rng = np.random.RandomState(21)
    tolerance = {"float32": 2e-5, "float64": 1e-12}[dtype]
    for _ in range(600):
        m, n = (int(size) for size in rng.choice(SIZES, 2))
        matrix, x, y = (rng.uniform(-1, 1, shape).astype(dtype) for shape in ((m, n), (n,), (m,)))
        alpha, beta = (np.asarray(rng.choice([0, 1, -0.5]), dtype) for _ in range(2))
        result = gemv(
            choose(rng, make_vectors(y)),
            alpha,
            choose(rng, make_matrices(matrix)),
            choose(rng, make_vectors(x)),
            beta,
        )
        expected = beta * y + alpha * matrix.dot(x)
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance * max(n, 1))


@FLOATS
@pytest.mark.parametrize("shape", [(5, 7), (40, 33), (200, 300)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_in_place_updates_of_vectors(dtype, shape, order):
    rng = np.random.RandomState(22)
    matrix = np.asarray(rng.uniform(-1, 1, shape).astype(dtype), order=order)
    values = rng.uniform(-1, 1, shape[0]).astype(dtype)
    state, x = theano.shared(values), tensor.vector(dtype=dtype)
    half = np.asarray(0.5, dtype)
    product = tensor.dot(theano.shared(matrix, borrow=True), x)
    function = theano.function([x], updates=[(state, half * state + product)])
    assert any(
        type(node.op) is blas.Gemv or type(node.op).__name__ == "CGemv"
        for node in function.maker.fgraph.apply_nodes
    )
    for _ in range(3):
        x_value = rng.uniform(-1, 1, shape[1]).astype(dtype)
        values = half * values + matrix.dot(x_value)
        function(x_value)
    np.testing.assert_allclose(state.get_value(), values, rtol=2e-5, atol=2e-4)


@needs_kernels
@FLOATS
def test_products_of_vectors_do_not_depend_on_the_number_of_threads(dtype, require_equal_results):
    gemv = compile_gemv(dtype)
    rng = np.random.RandomState(23)
    alpha, beta = np.asarray(0.3, dtype), np.asarray(1, dtype)
    for m, n in ((400, 190), (190, 400), (17, 3000), (3000, 17), (1111, 999)):
        matrix = rng.uniform(-1, 1, (m, n)).astype(dtype)
        y, x = rng.uniform(-1, 1, m).astype(dtype), rng.uniform(-1, 1, n).astype(dtype)
        for layout in (matrix, np.asfortranarray(matrix)):
            require_equal_results(functools.partial(gemv, y, alpha, layout, x, beta))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [3, 11, 20, 64])
def test_a_factor_of_zero_ignores_its_operand(order, n):
    gemv = compile_gemv("float64")
    zero, one = np.float64(0), np.float64(1)
    ones, nans = np.ones(n), np.full(n, np.nan)
    matrix = np.ones((n, n), order=order)
    assert np.array_equal(gemv(nans, one, matrix, ones, zero), np.full(n, float(n)))
    assert np.array_equal(gemv(ones, zero, matrix * np.nan, ones, one), ones)


@pytest.mark.parametrize("order", ["C", "F"])
def test_values_that_are_not_finite_stay_in_their_rows(order):
    """The kernels load the lanes at the end of a row or column twice."""
    gemv = compile_gemv("float64")
    zero, one = np.float64(0), np.float64(1)
    for n in range(8, 30):
        matrix = np.ones((n, n), order=order)
        matrix[n // 2, n - 2] = np.inf
        matrix[1, 0] = np.nan
        x = np.ones(n)
        expected = np.full(n, float(n))
        expected[n // 2], expected[1] = np.inf, np.nan
        np.testing.assert_array_equal(gemv(x, one, matrix, x, zero), expected)
        x[-1] = -np.inf
        np.testing.assert_array_equal(
            gemv(x, one, matrix, x, zero)[2 : n // 2], np.full(n // 2 - 2, -np.inf)
        )


@pytest.mark.parametrize("n_columns", [1, 40])
def test_products_of_matrices_with_one_row_or_column(n_columns):
    rng = np.random.RandomState(24)
    x, y = tensor.dmatrices("xy")
    dot = theano.function([x, y], tensor.dot(x, y))
    for m in (1, 5, 64):
        left, right = rng.uniform(size=(m, 40)), rng.uniform(size=(40, n_columns))
        for first, second in itertools.product(make_matrices(left), make_matrices(right)):
            np.testing.assert_allclose(dot(first, second), left.dot(right), rtol=1e-12)


@FLOATS
@pytest.mark.parametrize(
    "shape",
    [(1, 1), (5, 7), (33, 18), (20, 1), (1, 20), (0, 3), (3, 0), (300, 400), (128, 3), (41, 48)],
)
def test_outer_products_have_the_same_values_in_every_layout(dtype, shape):
    matrix, x, y = (variable(dtype=dtype) for variable in (tensor.matrix, *[tensor.vector] * 2))
    scale = np.asarray(0.37, dtype)
    function = theano.function([matrix, x, y], matrix + scale * tensor.outer(x, y))
    rng = np.random.RandomState(25)
    values = rng.uniform(-1, 1, shape).astype(dtype)
    left, right = (rng.uniform(-1, 1, size).astype(dtype) for size in shape)
    results = [
        function(*arrays)
        for arrays in itertools.product(
            make_matrices(values), make_vectors(left), make_vectors(right)
        )
    ]
    expected = values + scale * np.outer(left, right)
    np.testing.assert_allclose(results[0], expected, rtol=1e-5, atol=1e-6)
    # The results of a BLAS may depend on the layout.
    if HAS_KERNELS:
        for result in results:
            np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("shape", [(7, 5), (3, 40), (41, 43)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_in_place_updates_of_matrices(shape, order):
    rng = np.random.RandomState(26)
    values = np.asarray(rng.uniform(size=shape), order=order)
    x, y = tensor.dvectors("x", "y")
    state = theano.shared(values)
    function = theano.function([x, y], updates=[(state, state + 0.5 * tensor.outer(x, y))])
    left, right = (rng.uniform(size=size) for size in shape)
    for _ in range(2):
        function(left, right)
    np.testing.assert_allclose(state.get_value(), values + np.outer(left, right))


@needs_kernels
def test_products_of_vectors_need_no_module():
    y, x = tensor.dvectors("yx")
    matrix = tensor.dmatrix()
    function = theano.function([matrix, x, y], [tensor.dot(matrix, x), matrix + tensor.outer(y, x)])
    nodes = function.maker.fgraph.apply_nodes
    assert {"CGemv", "CGer"} <= {type(node.op).__name__ for node in nodes}
    for node in nodes:
        missing = {}
        node.op.c_linker(node, []).add_missing(missing)
        assert missing == {}


@pytest.mark.parametrize("wrong", [0, 1])
def test_wrong_shapes_are_reported(wrong):
    gemv = compile_gemv("float64")
    shape = [4, 5]
    shape[wrong] += 1
    with pytest.raises(ValueError, match=f"Shape mismatch: A.shape.{wrong}."):
        gemv(np.ones(4), np.float64(1), np.ones(shape), np.ones(5), np.float64(1))


def test_debug_mode_accepts_the_sum_of_a_vector_and_its_product():
    """DebugMode also runs the rejected CGemv that would overwrite the vector."""
    matrix, vector = tensor.dmatrix(), tensor.dvector()
    mode = theano.compile.debugmode.DebugMode(stability_patience=2)
    function = theano.function([matrix, vector], vector + tensor.dot(matrix, vector), mode=mode)
    values = np.eye(4)[::-1].copy(), np.arange(4.0)
    np.testing.assert_array_equal(function(*values), [3, 3, 3, 3])
