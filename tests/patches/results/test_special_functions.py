"""results/special-functions.patch corrects functions of negative numbers and of extreme values.

Without the patch, arccosh(cosh(x)) is x, also for a negative x. If x <= 0, psi(x) and its
derivative are 0, and gammainc of x ends the process. The quotient 1 // 0.1 is 10 instead of 9. The
quotient exp(-y**2) / erfc(x) is computed as if y were x.
"""

import numpy as np
import pytest
import scipy.special
import theano
from theano import tensor as tt

VALUES = np.array([-3.5, -2.25, -1e-3, 1e-3, 0.75, 3])


@pytest.mark.parametrize("value", [-2.0, 2.0])
def test_arccosh_of_cosh_is_the_absolute_value(value):
    number = tt.dscalar()
    function = theano.function([number], tt.arccosh(tt.cosh(number)))
    np.testing.assert_allclose(function(value), abs(value))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_psi_and_its_derivative_equal_scipys(dtype):
    x = tt.vector(dtype=dtype)
    values = VALUES.astype(dtype)
    functions = [theano.function([x], op(x)) for op in (tt.psi, tt.tri_gamma)]
    expected = scipy.special.psi(values), scipy.special.polygamma(1, values)
    for function, result in zip(functions, expected, strict=True):
        results = function(values)
        assert results.dtype == dtype
        np.testing.assert_allclose(results, result, rtol=1e-7 if dtype == "float64" else 1e-5)


def test_psi_and_its_derivative_equal_scipys_at_the_poles():
    x = tt.dvector()
    poles = np.array([0.0, -1.0, -2.0])
    function = theano.function([x], [tt.psi(x), tt.tri_gamma(x)])
    expected = scipy.special.psi(poles), scipy.special.polygamma(1, poles)
    np.testing.assert_array_equal(function(poles), expected)


def test_the_gradient_of_gammaln_is_psi():
    x = tt.dscalar()
    function = theano.function([x], theano.grad(tt.gammaln(x), x))
    np.testing.assert_allclose(function(-1.5), scipy.special.psi(-1.5), rtol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_integer_quotients_of_floats_equal_numpys(dtype):
    values = np.array([1, 0.1, -1, 5, -0.3, 0, np.inf, -np.inf, np.nan, 0.7, 1e30, -7, 0.2], dtype)
    pairs = [grid.ravel() for grid in np.meshgrid(values, values)]
    x, y = tt.vector(dtype=dtype), tt.vector(dtype=dtype)
    with np.errstate(all="ignore"):
        expected = np.floor_divide(*pairs)
    np.testing.assert_array_equal(theano.function([x, y], x // y)(*pairs), expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_integer_quotients_by_one_are_integers(dtype):
    x, values = tt.vector(dtype=dtype), VALUES.astype(dtype)
    result = theano.function([x], x // 1)(values)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, np.floor(values))


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions_equal_scipys(name):
    """Results are correct in C and in Python's fused loops, and nan outside of the domain."""
    k, x = tt.dvectors("kx")
    output = getattr(tt, name)(k, x) * 2
    expected = getattr(scipy.special, name)(2.0, 3.0) * 2
    for mode in (None, theano.Mode("py", "fast_run")):
        result = theano.function([k, x], output, mode=mode)([2.0], [3.0])
        np.testing.assert_allclose(result, [expected], rtol=1e-6)
    result = theano.function([k, x], output)([-1.0, 2, np.nan], [5.0, -1, 1])
    assert np.isnan(result).all()


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "gammau", "gammal"])
def test_incomplete_gamma_functions_of_positive_numbers_equal_scipys(name):
    """Results equal SciPy's, also for infinity and for a continued fraction that starts with 0."""
    k, x = tt.dvectors("kx")
    numbers = [0.25, 0.5, 1, 2, 3, 5, 20]
    pairs = [grid.ravel() for grid in np.meshgrid(numbers, [0, *numbers, np.inf])]
    regular = "gammaincc" if name in ("gammaincc", "gammau") else "gammainc"
    expected = getattr(scipy.special, regular)(*pairs)
    if name != regular:
        expected *= scipy.special.gamma(pairs[0])
    result = theano.function([k, x], getattr(tt, name)(k, x))(*pairs)
    np.testing.assert_allclose(result, expected, rtol=1e-8)
    assert np.isnan(theano.function([k, x], getattr(tt, name)(k, x))([-1.0], [1.0]))


def test_chi2sf_of_negative_values_is_one():
    x, k = tt.dvectors("x", "k")
    survival = theano.function([x, k], tt.chi2sf(x, k))
    values = survival([-3.0, -0.0, 2.0, -3.0], [1.0, 2.0, 2.0, -1.0])
    np.testing.assert_allclose(values, [1.0, 1.0, np.exp(-1.0), np.nan])


def test_a_power_that_is_not_real_is_nan_in_python():
    x, y = tt.dvectors("xy")
    function = theano.function([x, y], x**y + 1, mode=theano.Mode("py", "fast_run"))
    assert np.isnan(function([-2.0], [0.5])).all()


@pytest.mark.parametrize(("c", "d"), [(-6.0, 3.0), (-1.0, 1.0), (-4.0, 2.0), (-9.0, 3.0)])
@pytest.mark.parametrize("value", [0.5, 1.0, 3.0])
def test_exp_divided_by_erfc_is_correct_for_any_factors(c, d, value):
    """A rewrite applies only if c == -d**2, as in the gradient of log(erfc(d * x))."""
    x = tt.dscalar()
    result = theano.function([x], tt.exp(c * x**2) / tt.erfc(d * x))(value)
    expected = np.exp(c * value**2 + (d * value) ** 2) / scipy.special.erfcx(d * value)
    np.testing.assert_allclose(result, expected, rtol=1e-4)


def test_exp_divided_by_erfc_of_another_variable_is_correct():
    x, y = tt.dscalars("xy")
    result = theano.function([x, y], tt.exp(-tt.sqr(x)) / tt.erfc(y))(30.0, 0.5)
    assert result == 0


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_quotients_equal_numpys(dtype):
    """Quotients are correct although squares of some absolute values overflow."""
    large = 1e30 if dtype == "complex64" else 1e200
    values = np.array([1 + 2j, large * (1 + 1j), (1 - 2j) / large, 1j, 2, 0.25 - 7j], dtype)
    pairs = [grid.ravel() for grid in np.meshgrid(values, values)]
    x, y = tt.vector(dtype=dtype), tt.vector(dtype=dtype)
    tolerance = 1e-6 if dtype == "complex64" else 1e-14
    with np.errstate(all="ignore"):
        expected = pairs[0] / pairs[1]
    np.testing.assert_allclose(theano.function([x, y], x / y)(*pairs), expected, rtol=tolerance)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_absolute_values_are_correct(dtype):
    """Results are correct although squares overflow or underflow, and for one infinite part."""
    large = 1e30 if dtype == "complex64" else 1e200
    infinite = complex(np.inf, np.nan), complex(np.nan, -np.inf), complex(np.nan, 1)
    values = np.array([3 + 4j, large * (3 + 4j), (3 - 4j) / large, *infinite], dtype)
    x = tt.vector(dtype=dtype)
    result = theano.function([x], abs(x))(values)
    np.testing.assert_allclose(result, [5, 5 * large, 5 / large, np.inf, np.inf, np.nan], 1e-6)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16", "uint32", "uint64"])
def test_unsigned_integers_become_complex(dtype):
    x = tt.vector(dtype=dtype)
    function = theano.function([x], [tt.cast(x, "complex128"), x * tt.constant(1 + 2j)])
    converted, product = function(np.array([0, 1], dtype))
    assert list(converted) == [0, 1]
    assert list(product) == [0, 1 + 2j]
