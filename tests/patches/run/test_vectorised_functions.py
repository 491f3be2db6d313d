"""exp and tanh of loops are vectorised, and right, wherever in a loop an element is.

With the C library's, which are no part of a vectorised loop, the first test finds none.
"""

import re
from pathlib import Path

import numpy as np
import pytest
import theano
from theano import tensor

pytestmark = pytest.mark.skipif(
    " fma " not in Path("/proc/cpuinfo").read_text(encoding="utf-8"),
    reason="this processor has no fused multiply-add: the C library's functions are called",
)
# Units in the last place.
BOUNDS = {"exp": 1.0, "tanh": 2.4}
EXPRESSIONS = {
    **{name: f"tensor.{name}(x)" for name in BOUNDS},
    "sigmoid": "tensor.nnet.sigmoid(x)",
    "cell": "tensor.tanh(x) * tensor.nnet.sigmoid(x) + tensor.exp(x)",
}
DTYPES = ("float32", "float64")


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_they_are_vectorised(run_python, tmp_path, name):
    notes = tmp_path / "notes"
    result = run_python(
        f"""
        import theano
        from theano import tensor
        x = tensor.dvector()
        theano.function([x], {EXPRESSIONS[name]})
        """,
        flags=f"gcc.cxxflags=-fopt-info-vec-optimized={notes}",
    )
    assert result.returncode == 0, result.stderr
    assert re.search(r"mod\.cpp:\d+:\d+: optimized: +loop vectorized", notes.read_text())


def function(name, dtype):
    x = tensor.vector(dtype=dtype)
    return theano.function([x], eval(EXPRESSIONS[name], {"tensor": tensor, "x": x}))


def arguments(dtype):
    """Of all magnitudes, and more where results are neither 0, 1 nor infinite."""
    random = np.random.RandomState(1)
    largest = {"float32": 89, "float64": 710}[dtype]
    return np.concatenate(
        [
            random.uniform(-4, 4, 300_000),
            random.uniform(-largest * 1.1, largest, 300_000),
            random.choice([-1, 1], 100_000) * 10 ** random.uniform(-30, 3, 100_000),
        ]
    ).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BOUNDS)
def test_they_are_right(name, dtype):
    x = arguments(dtype)
    found = function(name, dtype)(x)
    expected = getattr(np, name)(x.astype(np.longdouble))
    inside = expected <= np.finfo(dtype).max
    unit = np.spacing(np.abs(expected[inside]).astype(dtype))
    errors = np.abs(found[inside] - expected[inside]) / unit
    assert errors.max() <= BOUNDS[name]
    assert np.isinf(found[~inside]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BOUNDS)
def test_special_values(name, dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e4, -1e4, 1e-40, -1e-40], dtype)
    found, expected = function(name, dtype)(x), getattr(np, name)(x)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_element_is_the_same_wherever_it_is(name, dtype):
    compute, x = function(name, dtype), arguments(dtype)[::100]
    together = compute(x)
    assert np.repeat(together, 3).tobytes() == compute(np.repeat(x, 3)).tobytes()
    assert together.tobytes() == compute(np.repeat(x, 3)[::3]).tobytes()
    for start, stop in [(0, 1), (1, 8), (5, 18), (2, 35)]:
        assert together[start:stop].tobytes() == compute(x[start:stop]).tobytes()


def test_next_to_another_function_they_are_the_librarys():
    x = tensor.dvector()
    for output in (tensor.exp(x), tensor.log1p(tensor.exp(x))):
        (node,) = theano.function([x], output).maker.fgraph.apply_nodes
        code = node.op.c_linker(node, []).get_src_code()
        assert ("theano_exp(" in code) == (output.owner.op == tensor.exp)
