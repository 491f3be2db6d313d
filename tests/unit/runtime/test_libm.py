import re
from pathlib import Path

import pytest

np = pytest.importorskip("numpy", reason="the builder's Python needs no numpy")
pytest.importorskip("mpmath", reason="mpmath comes with amdlibm only")
libm = pytest.importorskip("theano_fast.libm")

FUNCTIONS = {function.name: function for function in libm.FUNCTIONS}


def test_every_function_of_the_header_is_judged():
    header = Path(__file__).parents[3] / "recipes" / "amdlibm" / "src" / "amdlibm.h"
    names = re.findall(r"(?:UNARY|BINARY)\((\w+)\)", header.read_text())
    assert set(names) - {"name"} == set(FUNCTIONS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_samples_are_of_the_range_and_the_type(name, dtype):
    function = FUNCTIONS[name]
    arguments = libm.sample(function, 300, dtype)
    for values, (low, high) in zip(arguments, function.ranges, strict=True):
        assert values.dtype == dtype
        assert values.min() >= np.dtype(dtype).type(low)
        assert values.max() <= np.dtype(dtype).type(high)
        assert len(np.unique(values)) > 150


def test_errors_count_neighbours():
    function, values = FUNCTIONS["exp"], np.linspace(-3, 3, 50).astype("float32")
    rounded = np.exp(values.astype("float64")).astype("float32")
    assert libm.errors(function, rounded, [values]).max() <= 0.5
    beyond = np.nextafter(np.nextafter(rounded, np.float32(100)), np.float32(100))
    errors = libm.errors(function, beyond, [values])
    assert 1.5 <= errors.min() <= errors.max() <= 2.5


def test_a_nan_is_an_error_and_an_overflow_is_not():
    function = FUNCTIONS["exp"]
    values = np.array([1, 1000])
    errors = libm.errors(function, np.array([np.nan, np.inf]), [values])
    assert not errors[0] <= 4
    assert errors[1] == 0
