"""graph/push-out-in-one-pass.patch computes outer products in a Scan's steps elementwise.

Without the patch, BLAS computes each outer product in a call of its own, after another pass that
fills or copies the matrix.
"""

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.scan_module.scan_op import Scan
from theano.tensor import blas, blas_c

ROWS, COLUMNS, STEPS = 3, 5, 4


def erase_and_add(x, matrix, v):
    """Change a memory as a Neural Turing Machine does."""
    return matrix * (1 - tt.outer(tt.exp(x), v)) + tt.outer(x, v)


def scale(x, matrix, v):
    return tt.tanh(matrix + 2 * tt.outer(x, v))


def multiply_a_product(x, matrix, v):
    """Read the outer product by an operation that is not elementwise."""
    return matrix + tt.dot(tt.outer(x, x), tt.outer(tt.exp(x), v))


STEP_FUNCTIONS = [erase_and_add, scale, multiply_a_product]


def compile_scan(step, dtype="float64", excluded=()):
    """Compile the last matrix of a scan and the gradients."""
    x, matrix, v = (getattr(tt, kind)(dtype=dtype) for kind in ("matrix", "matrix", "vector"))
    matrices, _ = theano.scan(step, sequences=[x], outputs_info=[matrix], non_sequences=[v])
    outputs = [matrices[-1], *tt.grad(tt.sqr(matrices).sum(), [x, matrix, v])]
    mode = theano.compile.get_mode("FAST_RUN").excluding(*excluded)
    return theano.function([x, matrix, v], outputs, mode=mode)


def count_ger(function):
    """Count the nodes in the steps of all scans that compute an outer product by BLAS."""
    nodes = [
        inner_node
        for node in function.maker.fgraph.toposort()
        if isinstance(node.op, Scan)
        for inner_node in node.op.fn.maker.fgraph.toposort()
    ]
    return sum(isinstance(node.op, (blas.Ger, blas_c.CGer)) for node in nodes)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("step", STEP_FUNCTIONS, ids=lambda step: step.__name__)
def test_results_equal_results_without_the_optimizer(step, dtype, monkeypatch):
    monkeypatch.setattr(theano.config, "on_opt_error", "raise")
    functions = [
        compile_scan(step, dtype, excluded) for excluded in ([], ["scanOp_outer_products"])
    ]
    random = np.random.RandomState(0)
    shapes = (STEPS, ROWS), (ROWS, COLUMNS), (COLUMNS,)
    arguments = [random.uniform(-1, 1, shape).astype(dtype) for shape in shapes]
    tolerance = {"float32": 1e-4, "float64": 1e-12}[dtype]
    for result, expected in zip(*(function(*arguments) for function in functions), strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("step", [erase_and_add, scale], ids=lambda step: step.__name__)
def test_elementwise_loops_compute_outer_products(step):
    assert count_ger(compile_scan(step, excluded=["scanOp_outer_products"])) > 0
    assert count_ger(compile_scan(step)) == 0


def test_matrices_that_a_product_reads_stay_products():
    assert count_ger(compile_scan(multiply_a_product)) > 0
