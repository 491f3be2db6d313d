"""run/vectorized-loops.patch: g++ vectorizes functions in loops, such as exp and tanh.

The result for an element does not depend on the element's position. g++ cannot vectorize calls of
the C library's functions: with them, the first test finds no vectorized loop.
"""

import numpy as np
import pytest
import theano
from expressions import EXPRESSIONS
from theano import tensor
from theano.misc import cpu

pytestmark = pytest.mark.skipif(
    not {"fma", "avx512"} & {level.name for level in cpu.levels},
    reason="this processor has no fused multiply-add: the C library's functions are called",
)
# Maps a function to its largest error, in units in the last place.
BOUNDS = {"exp": 0.9, "log": 0.9, "log1p": 0.9, "pow": 0.8, "tanh": 2.4}
DTYPES = ("float32", "float64")
SPECIAL = [0.0, 1, 2, 0.5, 3, 2.5, 1e4, 1e-40, 5e-324, 2**53 + 1.0, 1e308, np.inf, np.nan]


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_functions_are_vectorized(vectorized_lines, name):
    assert vectorized_lines(
        f"""
        import theano
        from theano import tensor
        x, y = tensor.dvectors(2)
        theano.function([x, y], {EXPRESSIONS[name]}, on_unused_input="ignore")
        """,
    )


def compile_expression(name, dtype):
    """Return a function of two vectors that computes an expression of EXPRESSIONS."""
    x, y = (tensor.vector(dtype=dtype) for _ in range(2))
    output = eval(EXPRESSIONS[name], {"tensor": tensor, "x": x, "y": y})
    return theano.function([x, y], output, on_unused_input="ignore")


def make_arguments(name, dtype):
    """Return arguments of all magnitudes; for most of them, the result is not 0, 1 or infinite."""
    random = np.random.RandomState(1)
    largest = {"float32": 88, "float64": 709}[dtype]
    magnitudes = 10 ** random.uniform(-0.4 * largest, 0.4 * largest, 300_000)
    if name in ("exp", "tanh", "sigmoid", "softplus"):
        x = np.concatenate(
            [
                random.uniform(-4, 4, 300_000),
                random.uniform(-largest * 1.2, largest * 1.1, 300_000),
                random.choice([-1, 1], 300_000) * np.minimum(magnitudes, 1e4),
            ]
        )
    else:
        x = np.concatenate(
            [random.uniform(0, 4, 300_000), random.uniform(0.9, 1.1, 300_000), magnitudes]
        )
        if name == "log1p":
            x[:600_000] -= 1
    with np.errstate(divide="ignore"):
        y = random.uniform(-largest, largest, x.size) / np.log(np.abs(x))
    return x.astype(dtype), np.clip(y, -1e300, 1e300).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BOUNDS)
def test_functions_are_accurate(name, dtype):
    x, y = make_arguments(name, dtype)
    result = compile_expression(name, dtype)(x, y)
    exact = [value.astype(np.longdouble) for value in (x, y)]
    expected = np.power(*exact) if name == "pow" else getattr(np, name)(exact[0])
    in_range = np.abs(expected) <= np.finfo(dtype).max
    unit = np.spacing(np.abs(expected[in_range]).astype(dtype))
    errors = np.abs(result[in_range] - expected[in_range]) / unit
    assert errors.max() <= BOUNDS[name]
    assert in_range.mean() > 0.9
    assert np.isinf(result[~in_range]).all()


@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide", "ignore:invalid")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BOUNDS)
def test_special_values_equal_numpys(name, dtype):
    values = np.concatenate([SPECIAL, np.negative(SPECIAL)]).astype(dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    result = compile_expression(name, dtype)(x, y)
    expected = np.power(x, y) if name == "pow" else getattr(np, name)(x)
    ordinary = np.isfinite(expected) & (expected != 0)
    np.testing.assert_array_max_ulp(result[ordinary], expected[ordinary], 4)
    np.testing.assert_array_equal(result[~ordinary], expected[~ordinary])
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(result[zero]), np.signbit(expected[zero]))


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["exp", "tanh"])
def test_exp_and_tanh_are_exact_at_zeros_infinities_and_extremes(name, dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e4, -1e4, 1e-40, -1e-40], dtype)
    actual, expected = compile_expression(name, dtype)(x, x), getattr(np, name)(x)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


@pytest.mark.parametrize("dtype", DTYPES)
def test_integer_powers_are_exact(dtype):
    x, y = (grid.ravel().astype(dtype) for grid in np.mgrid[-10:11, 0:8])
    expected = [float(int(a) ** int(b)) for a, b in zip(x, y, strict=True)]
    actual = compile_expression("pow", dtype)(x, y)
    np.testing.assert_array_equal(actual, np.array(expected, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_result_does_not_depend_on_the_position(name, dtype):
    compute = compile_expression(name, dtype)
    x, y = (array[::300] for array in make_arguments(name, dtype))
    together = compute(x, y)
    longer = [np.repeat(array, 3) for array in (x, y)]
    assert np.repeat(together, 3).tobytes() == compute(*longer).tobytes()
    assert together.tobytes() == compute(*(array[::3] for array in longer)).tobytes()
    for start, stop in [(0, 1), (1, 8), (5, 18), (2, 35)]:
        assert together[start:stop].tobytes() == compute(x[start:stop], y[start:stop]).tobytes()


def test_loops_with_other_functions_call_the_c_library():
    x = tensor.dvector()
    for output in (tensor.exp(x), tensor.log2(tensor.exp(x))):
        (node,) = theano.function([x], output).maker.fgraph.apply_nodes
        code = node.op.c_linker(node, []).get_src_code()
        assert ("libm_exp(" in code) == ("log2(" in code)


def test_a_flag_selects_the_c_librarys_functions(run_python):
    code = """
        import math, numpy, theano
        from theano import tensor
        x, values = tensor.dvector(), numpy.linspace(-3, 3, 1000)
        computed = theano.function([x], tensor.tanh(x))(values)
        print([*map(math.tanh, values)] == computed.tolist())
        """
    for flags, same in ("", "False"), ("gcc.cxxflags=-DTHEANO_LIBM", "True"):
        result = run_python(code, flags=flags)
        assert result.stdout.strip() == same, result.stderr
