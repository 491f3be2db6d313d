"""Test the samples, exact results and errors in the check of amdlibm."""

import re
from pathlib import Path

import pytest

np = pytest.importorskip("numpy", reason="the builder's Python has no NumPy")
pytest.importorskip("mpmath", reason="only stacks with amdlibm have mpmath")
libm = pytest.importorskip("theano_fast.libm")

FUNCTIONS = {function.name: function for function in libm.FUNCTIONS}


def test_every_function_of_amdlibm_h_is_checked():
    header = Path(__file__).parents[3] / "recipes" / "amdlibm" / "src" / "amdlibm.h"
    names = re.findall(r"(?:UNARY|BINARY)\((\w+)\)", header.read_text())
    assert set(names) - {"name"} == set(FUNCTIONS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_samples_have_the_type_and_are_in_the_range_of_the_function(name, dtype):
    function = FUNCTIONS[name]
    arguments = libm.sample(function, 300, dtype)
    for values, (low, high) in zip(arguments, function.ranges, strict=True):
        assert values.dtype == dtype
        assert values.min() >= np.dtype(dtype).type(low)
        assert values.max() <= np.dtype(dtype).type(high)
        assert len(np.unique(values)) > 150


def test_special_arguments_have_all_kinds_and_all_pairs_of_two_arguments():
    [values] = libm.list_special(FUNCTIONS["exp"], "float32")
    assert values.dtype == "float32"
    assert {0, np.inf, -np.inf, np.finfo("float32").max} <= set(values.tolist())
    assert np.isnan(values).any()
    assert np.signbit(values[values == 0]).tolist() == [False, True]
    assert (abs(values[values != 0]) < np.finfo("float32").tiny).any()
    pairs = libm.list_special(FUNCTIONS["pow"], "float64")
    assert len(pairs[0]) == len(pairs[1]) == len(values) ** 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_exact_results_agree_with_the_c_library(name, dtype):
    function = FUNCTIONS[name]
    arguments = libm.sample(function, 30, dtype)
    exact = libm.compute_exact(function, arguments)
    assert exact.dtype == np.longdouble
    assert (
        libm.compute_errors(
            libm.compute_conventional(function, arguments).astype(dtype), exact
        ).max()
        <= 0.6
    )


def test_results_of_special_arguments_follow_the_c_standard():
    x, y = np.array([0, -0.0, np.nan, 1e308]), np.array([-1, -3, 0, 2])
    assert libm.compute_conventional(FUNCTIONS["pow"], [x, y]).tolist() == [
        np.inf,
        -np.inf,
        1,
        np.inf,
    ]
    [erf] = libm.compute_conventional(FUNCTIONS["erf"], [np.array([np.nan])])
    assert np.isnan(erf)


def test_an_error_is_the_distance_in_units_in_the_last_place():
    """A rounded result errs by at most 0.5 ulp; the second float above errs by 1.5 to 2.5 ulp."""
    function, values = FUNCTIONS["exp"], np.linspace(-3, 3, 50).astype("float32")
    exact = libm.compute_exact(function, [values])
    rounded = exact.astype("float32")
    assert libm.compute_errors(rounded, exact).max() <= 0.5
    second_above = np.nextafter(np.nextafter(rounded, np.float32(100)), np.float32(100))
    errors = libm.compute_errors(second_above, exact)
    assert 1.5 <= errors.min() <= errors.max() <= 2.5


@pytest.mark.parametrize(
    ("result", "exact", "error"),
    [
        (np.nan, 1, np.inf),
        (np.nan, np.nan, 0),
        (1, np.nan, np.inf),
        (np.inf, np.inf, 0),
        (-np.inf, np.inf, np.inf),
        (np.finfo("float32").max, np.inf, np.inf),
        (np.inf, 3.4e38, np.inf),
        (0.0, -0.0, np.inf),
        (-0.0, -0.0, 0),
        (-709.09, -np.inf, np.inf),
        # The errors of subnormal results are in units of the smallest subnormal number, 1.4e-45.
        (0.0, 6e-45, 4.28),
        (3e-45, 1.4e-45, 1),
    ],
)
def test_a_wrong_special_result_has_an_infinite_error(result, exact, error):
    errors = libm.compute_errors(np.array([result], "float32"), np.array([exact], np.longdouble))
    assert errors[0] == pytest.approx(error, abs=0.01)
