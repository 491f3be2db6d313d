"""build/kernels-of-products.patch: kernels compute small matrix products instead of the BLAS."""

import functools
import itertools
import os

import numpy as np
import pytest
import theano
from theano import tensor
from theano.tensor import thunks_ext

CPUS = len(os.sched_getaffinity(0))
HAS_KERNELS = thunks_ext.enable_products(theano.config.blas.kernels)
# Sizes around the numbers of rows and columns of tiles, panels and parts.
SIZES = (1, 2, 3, 7, 8, 9, 16, 23, 24, 25, 48, 49, 64, 65, 97, 200)


@pytest.fixture(autouse=True)
def default_kernels():
    """Restore the kernels after each test."""
    yield
    thunks_ext.enable_products(theano.config.blas.kernels)


def make_matrix(rng, shape, dtype):
    """Return a random matrix: in C order, in Fortran order, or a part of a larger matrix."""
    layout = rng.randint(3)
    if layout == 2:
        return rng.standard_normal([n + 3 for n in shape]).astype(dtype)[: shape[0], : shape[1]]
    return np.asarray(rng.standard_normal(shape), dtype, order="CF"[layout])


def compile_gemm(dtype):
    z, x, y = (tensor.matrix(dtype=dtype) for _ in range(3))
    a, b = (tensor.scalar(dtype=dtype) for _ in range(2))
    function = theano.function([z, a, x, y, b], b * z + a * tensor.dot(x, y))
    assert any(isinstance(n.op, tensor.blas.Gemm) for n in function.maker.fgraph.apply_nodes)
    return function


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_equal_numpys(dtype):
    gemm = compile_gemm(dtype)
    rng = np.random.RandomState(11)
    tolerance = {"float32": 2e-4, "float64": 1e-11}[dtype]
    for _ in range(400):
        m, n, k = (int(size) for size in rng.choice(SIZES, 3))
        x, y, z = (make_matrix(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        a, b = (np.asarray(rng.choice([0, 1, -0.5]), dtype) for _ in range(2))
        np.testing.assert_allclose(
            gemm(z, a, x, y, b), b * z + a * np.dot(x, y), rtol=tolerance, atol=tolerance
        )


def test_a_factor_of_zero_ignores_the_old_value():
    z, x, y = tensor.dmatrices("zxy")
    outputs = tensor.blas.gemm_inplace(z, np.float64(1), x, y, np.float64(0))
    gemm = theano.function([theano.In(z, mutable=True), x, y], outputs, accept_inplace=True)
    x_value, y_value = np.ones((20, 30), z.dtype), np.ones((30, 40), z.dtype)
    result = gemm(np.full((20, 40), np.nan, z.dtype), x_value, y_value)
    assert np.array_equal(result, np.full((20, 40), 30.0))


def test_products_of_nan_and_infinity_equal_numpys():
    x, y = tensor.matrices("xy")
    dot = theano.function([x, y], tensor.dot(x, y))
    x_value = np.ones((9, 70), x.dtype)
    x_value[2, 5], x_value[4, 6] = np.nan, np.inf
    y_value = np.ones((70, 33), x.dtype)
    y_value[5, 3] = -np.inf
    np.testing.assert_array_equal(dot(x_value, y_value), np.dot(x_value, y_value))


@pytest.mark.skipif(not HAS_KERNELS, reason="the processor has no AVX2")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_do_not_depend_on_the_number_of_threads(dtype, require_equal_results):
    gemm = compile_gemm(dtype)
    rng = np.random.RandomState(12)
    a, b = np.asarray(0.3, dtype), np.asarray(1, dtype)
    for m, n, k in ((200, 300, 100), (8, 2000, 65), (2000, 20, 30), (130, 49, 700)):
        x, y, z = (make_matrix(rng, shape, dtype) for shape in ((m, k), (k, n), (m, n)))
        require_equal_results(functools.partial(gemm, z, a, x, y, b))


def test_batches_equal_results_of_the_blas():
    rng = np.random.RandomState(13)
    x, y = (tensor.tensor3(dtype="float64") for _ in range(2))
    function = theano.function([x, y], tensor.batched_dot(x, y))
    shapes = ((7, 33, 40), (7, 40, 25))
    values = [rng.standard_normal(shape) for shape in shapes]
    by_kernels = function(*values)
    thunks_ext.enable_products(False)
    by_blas = function(*values)
    np.testing.assert_allclose(by_kernels, by_blas, rtol=1e-10, atol=1e-10)


@pytest.mark.skipif(not HAS_KERNELS, reason="the processor has no AVX2")
def test_an_element_is_the_sum_of_its_products_in_order():
    """Small terms vanish if they are added to a large term, but not if they are added first."""
    x, y = tensor.matrices("xy")
    dot = theano.function([x, y], tensor.dot(x, y))
    x_value = np.ones((16, 160), "float64")
    x_value[:, 0] = 2.0**60
    x_value[:, -1] = -(2.0**60)
    y_value = np.ones((160, 32), "float64")
    assert np.array_equal(dot(x_value, y_value), np.zeros((16, 32)))


@pytest.mark.skipif(not HAS_KERNELS, reason="the processor has no AVX2")
@pytest.mark.skipif(CPUS == 1, reason="this process may use only one CPU")
@pytest.mark.parametrize("kernels", [True, False])
def test_a_flag_disables_the_kernels(run_python, kernels):
    program = """
import os
import numpy as np
import theano
from theano import tensor

x = tensor.dmatrix()
f = theano.function([x], tensor.dot(x, x))
value = np.ones((400, 400))
np.dot(np.ones((2000, 2000)), np.ones((2000, 2000)))
before = len(os.listdir("/proc/self/task"))
f(value)
print(len(os.listdir("/proc/self/task")) - before)
"""
    completed = run_python(program, flags=f"blas.kernels={kernels},elemwise.threads=2")
    assert completed.returncode == 0, completed.stderr
    assert (int(completed.stdout) > 0) == kernels


def test_results_do_not_depend_on_the_layout_of_operands():
    x, y = tensor.matrices("xy")
    dot = theano.function([x, y], tensor.dot(x, y))
    rng = np.random.RandomState(14)
    x_value, y_value = (
        rng.standard_normal(shape).astype(x.dtype) for shape in ((18, 70), (70, 50))
    )
    expected = dot(x_value, y_value)
    layouts = [
        np.ascontiguousarray,
        np.asfortranarray,
        lambda value: np.repeat(value, 2, 1)[:, ::2],
    ]
    for first, second in itertools.product(layouts, layouts):
        assert np.array_equal(dot(first(x_value), second(y_value)), expected)


def test_without_a_blas_numpy_computes_products(run_python):
    """Without blas.ldflags, Theano computes products by NumPy."""
    program = """
import numpy as np
import theano
from theano import tensor

x, y, z = tensor.dmatrices("xyz")
f = theano.function([x, y, z], [tensor.dot(x, y), 0.5 * z + tensor.dot(y, x)])
value = np.ones((20, 20))
print(*(result[3, 4] for result in f(value, value, value)))
"""
    done = run_python(program, flags="blas.ldflags=")
    assert done.stdout == "20.0 20.5\n", done.stderr
