"""Precompiled thunks compute poolings and their gradients with the bits of the ops' C code.

theano/tensor/c_code/thunks/pooling.h has the computations.
"""

import functools
import itertools

import numpy as np
import pytest
import theano
from theano import tensor
from theano.gof.linker_parts import linker_types
from theano.tensor.signal.pool import AveragePoolGrad, MaxPoolGrad, Pool

MODES = ("max", "sum", "average_exc_pad", "average_inc_pad")
FAST = theano.Mode(theano.gof.vm.VM_Linker(use_cloop=True, allow_gc=False), None)
# The dtype of x, the number of its dimensions, and the number of pooled dimensions.
CASES = [("float32", 4, 2), ("float64", 3, 2), ("float32", 1, 1), ("float64", 4, 3)]


def compile_poolings(dtype, ndim, n_pooled, mode=FAST):
    """Return a dictionary of functions of x, z, gz and the windows' lengths, strides and padding.

    The key (mode, ignore_border) has a Pool of x. The key (mode,) has the gradient of x for the
    result z, whose gradient is gz.
    """
    x, z, gz = (tensor.TensorType(dtype, [False] * ndim)() for _ in range(3))
    windows = tensor.lvectors(3)
    outputs = {}
    for name in MODES:
        for ignore_border in (True, False):
            outputs[name, ignore_border] = Pool(ignore_border, name, n_pooled)(x, *windows)
        outputs[name,] = (
            MaxPoolGrad(True, n_pooled)(x, z, gz, *windows)
            if name == "max"
            else AveragePoolGrad(True, name, n_pooled)(x, gz, *windows)
        )
    compile_function = functools.partial(theano.function, mode=mode, on_unused_input="ignore")
    # The borrowed inputs keep their strides.
    inputs = [theano.In(variable, borrow=True) for variable in (x, z, gz, *windows)]
    return {key: compile_function(inputs, output) for key, output in outputs.items()}


@pytest.fixture
def compile_stock(monkeypatch):
    """Return compile_poolings, for functions that run the C code of the ops."""

    def compile_functions(*arguments):
        with monkeypatch.context() as patch:
            for op in (AveragePoolGrad, MaxPoolGrad, Pool):
                patch.delitem(linker_types, op)
            return compile_poolings(*arguments)

    return compile_functions


def make_values(rng, shape, dtype):
    """Return numbers of which some are equal; half of the arrays also have special values."""
    values = rng.normal(size=shape) if rng.randint(2) else rng.randint(-4, 4, shape) / 4
    values = values.astype(dtype)
    if rng.randint(2):
        special = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], shape)
        values = np.where(rng.uniform(size=shape) < 0.2, special, values).astype(dtype)
    return values


def change_strides(rng, array):
    """Return an array with the same values, and with strides from a random choice."""
    order = rng.permutation(array.ndim)
    choices = (
        array,
        np.ascontiguousarray(array[..., ::-1])[..., ::-1],
        np.repeat(array, 2, axis=-1)[..., ::2],
        np.ascontiguousarray(array.transpose(order)).transpose(np.argsort(order)),
    )
    return choices[rng.randint(len(choices))]


def call(function, *arguments):
    """Return the result, or the type and the message of the exception."""
    try:
        return function(*arguments)
    except ValueError as error:
        return type(error), str(error).splitlines()[0]


def require_same_bits(result, expected):
    """Require equal bits, except that a NaN may have another sign.

    If g++ exchanges the operands of a sum of two NaNs, the sum has the other NaN's sign.
    """
    if isinstance(expected, tuple):
        assert result == expected
        return
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result), nan)
    unsigned = f"uint{8 * expected.itemsize}"
    np.testing.assert_array_equal(
        result[~nan].view(unsigned), expected[~nan].view(unsigned), strict=True
    )


def make_arguments(rng, dtype, ndim, n_pooled, longest):
    """Return an x and random windows: their lengths, strides and padding."""
    sizes = rng.randint(1, 4, ndim)
    sizes[ndim - n_pooled :] = rng.randint(1, longest, n_pooled)
    if rng.randint(8) == 0:
        sizes[: ndim - n_pooled] = 0
    lengths = rng.randint(1, 6, n_pooled)
    strides = lengths if rng.randint(3) == 0 else rng.randint(1, 5, n_pooled)
    pads = np.array([rng.randint(length) for length in lengths]) * rng.randint(2)
    x = change_strides(rng, make_values(rng, sizes, dtype))
    return x, lengths, strides, pads


@pytest.mark.parametrize(("dtype", "ndim", "n_pooled"), CASES)
def test_results_and_gradients_have_the_bits_of_stock_code(dtype, ndim, n_pooled, compile_stock):
    rng = np.random.RandomState(31)
    functions = compile_poolings(dtype, ndim, n_pooled)
    stock = compile_stock(dtype, ndim, n_pooled)
    for longest in [9] * 80 + [40 if n_pooled < 3 else 15] * 20:
        x, *windows = make_arguments(rng, dtype, ndim, n_pooled, longest)
        maxima = functions["max", True](x, x, x, *windows)
        if rng.randint(3) == 0:
            shape = (*x.shape[: ndim - n_pooled], *rng.randint(0, 9, n_pooled))
            maxima = make_values(rng, shape, dtype)
        z = change_strides(rng, maxima)
        gz = change_strides(rng, make_values(rng, z.shape, dtype))
        for key, function in functions.items():
            arguments = (x, z, gz, *windows)
            require_same_bits(call(function, *arguments), call(stock[key], *arguments))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ignore_border", [True, False])
def test_values_equal_the_python_codes(mode, ignore_border):
    rng = np.random.RandomState(32)
    python = theano.Mode("py", None)
    x = tensor.tensor4(dtype="float64")
    for lengths, strides in itertools.product([(2, 2), (3, 4), (1, 5)], repeat=2):
        pool = Pool(ignore_border, mode, 2)(x, lengths, strides)
        gradient = tensor.grad(tensor.sqr(pool).sum(), x)
        value = rng.normal(size=(2, 3, 11, 13))
        results, expected = (
            theano.function([x], [pool, gradient], mode=how)(value) for how in (FAST, python)
        )
        for result, reference in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, reference, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_poolings_need_no_module(dtype):
    for function in compile_poolings(dtype, 3, 2).values():
        for node in function.maker.fgraph.apply_nodes:
            missing = {}
            node.op.c_linker(node, []).add_missing(missing)
            assert missing == {}


def test_stock_code_pools_other_types():
    x = tensor.TensorType("int64", [False] * 2)()
    function = theano.function([x], Pool(True, "sum", 2)(x, (2, 2)), mode=FAST)
    value = np.arange(12).reshape(2, 6)
    np.testing.assert_array_equal(function(value), [[14, 22, 30]])


@pytest.mark.parametrize("key", [(mode, True) for mode in MODES] + [(mode,) for mode in MODES])
@pytest.mark.parametrize("n_pooled", [1, 2, 3])
def test_results_do_not_depend_on_the_number_of_threads(key, n_pooled, require_equal_results):
    rng = np.random.RandomState(33)
    function = compile_poolings("float32", 4, n_pooled)[key]
    x = rng.normal(size=(5, 9, 31, 33)).astype("float32")
    windows = [[3] * n_pooled, [2] * n_pooled, [0] * n_pooled]
    z = compile_poolings("float32", 4, n_pooled)["max", True](x, x, x, *windows)
    require_equal_results(functools.partial(function, x, z, z, *windows))


def test_outputs_are_reused_or_replaced():
    """An output of an earlier call may have another shape."""
    functions = compile_poolings("float64", 3, 2)
    rng = np.random.RandomState(34)
    windows = [[2, 2]] * 2 + [[0, 0]]
    for n in (4, 4, 6, 5, 4):
        x = rng.normal(size=(3, n, n))
        maxima = functions["max", True](x, x, x, *windows)
        m = n // 2
        parts = x[:, : 2 * m, : 2 * m].reshape(3, m, 2, m, 2)
        np.testing.assert_array_equal(maxima, parts.max((2, 4)))
        gradient = functions["max",](x, maxima, maxima, *windows)
        assert np.count_nonzero(gradient) == maxima.size
        np.testing.assert_array_equal(np.sort(gradient[gradient != 0]), np.sort(maxima.ravel()))


@pytest.mark.parametrize(
    ("key", "windows", "message"),
    [
        (("max", True), [[2], [2, 2], [0, 0]], "ws must be a vector of size 2"),
        (("sum", True), [[2, 2], [2], [0, 0]], "stride must be a vector of size 2"),
        (("max",), [[2, 2], [2, 2], [0]], "pad must be a vector of size 2"),
        (("sum", True), [[2, 2], [0, 2], [0, 0]], "stride must not be zero"),
        (("sum", False), [[2, 2], [2, 2], [1, 0]], "padding must be zero when ignore border"),
        (("average_exc_pad",), [[2, 2], [2, 2], [1, 0]], "padding must be zero for average_exc"),
        # The last window starts behind the 5 columns. The op's C code reads beyond x.
        (("max", True), [[1, 2], [1, 1], [0, 2]], "a window contains no element of x"),
    ],
)
def test_wrong_windows_are_reported(key, windows, message):
    x = np.ones((4, 5))
    with pytest.raises(ValueError, match=message):
        compile_poolings("float64", 2, 2)[key](x, x, x, *windows)


def test_short_gradients_are_reported():
    x, windows = np.ones((2, 6)), [[2], [2], [0]]
    gradient = compile_poolings("float64", 2, 1)["max",]
    for z, gz in ((np.ones((2, 3)), np.ones((2, 2))), (np.ones((1, 3)), np.ones((2, 3)))):
        with pytest.raises(ValueError, match="z or gz is too short"):
            gradient(x, z, gz, *windows)
