"""build/kernels-of-products.patch: kernels compute CorrMM and its gradients without a BLAS."""

import functools

import numpy as np
import pytest
import theano
from theano import tensor
from theano.tensor.linkers import precompiled_ops
from theano.tensor.linkers.threads import HAS_KERNELS
from theano.tensor.nnet import corr

pytestmark = pytest.mark.skipif(not HAS_KERNELS, reason="the processor has no AVX2")
FLOATS = pytest.mark.parametrize("dtype", ["float32", "float64"])
OPS = (corr.CorrMM, corr.CorrMM_gradInputs, corr.CorrMM_gradWeights)


def compile_ops(dtype, **parameters):
    """Return functions that compute the top, the gradient of the images and of the filters.

    The gradients take the lengths of their outputs as the last argument.
    """
    images, filters, top = (tensor.tensor4(dtype=dtype) for _ in range(3))
    lengths = tensor.lvector()
    arguments = [[images, filters], [filters, top, lengths], [images, top, lengths]]
    functions = []
    for op, inputs in zip(OPS, arguments, strict=True):
        output = op(**parameters)(*inputs[:2], *[(lengths[0], lengths[1])][: len(inputs) - 2])
        functions.append(theano.function(inputs, output, mode=theano.Mode("cvm", None)))
    return functions


def compile_stock_ops(monkeypatch, dtype, **parameters):
    """Return the functions of compile_ops with modules that are compiled from stock C code."""
    with monkeypatch.context() as patch:
        for op in OPS:
            patch.setitem(precompiled_ops.CONDITIONS, op, (lambda node: False,))
        return compile_ops(dtype, **parameters)


def make_arguments(rng, functions, images, filters):
    """Return the arguments of functions of compile_ops, with a random gradient of the top."""
    top = rng.uniform(-1, 1, functions[0](images, filters).shape).astype(images.dtype)
    return [
        (images, filters),
        (filters, top, np.array(images.shape[2:])),
        (images, top, np.array(filters.shape[2:])),
    ]


def make_arrays(rng, dtype, images, filters):
    """Return random images and filters of the given shapes."""
    return [rng.uniform(-1, 1, shape).astype(dtype) for shape in (images, filters)]


@FLOATS
@pytest.mark.parametrize("mode", ["valid", "half", "full", (1, 2), ((0, 1), (2, 0))])
@pytest.mark.parametrize(
    "steps",
    [
        {},
        {"subsample": (2, 1)},
        {"filter_dilation": (2, 3)},
        {"subsample": (1, 3), "filter_dilation": (1, 2), "openmp": True},
    ],
)
@pytest.mark.parametrize("groups", [1, 3])
def test_results_are_near_stock_theanos(monkeypatch, dtype, mode, steps, groups):
    parameters = {"border_mode": mode, "num_groups": groups, **steps}
    functions = compile_ops(dtype, **parameters)
    stock = compile_stock_ops(monkeypatch, dtype, **parameters)
    rng = np.random.RandomState(31)
    tolerance = {"float32": 5e-5, "float64": 1e-12}[dtype]
    compared = 0
    for _ in range(12):
        channels, filters = rng.randint(1, 5), rng.choice([1, 2, 5, 9, 17, 40])
        images, filters = make_arrays(
            rng,
            dtype,
            (rng.randint(1, 9), groups * channels, *rng.randint(1, 24, 2)),
            (groups * filters, channels, *rng.randint(1, 5, 2)),
        )
        try:
            arguments = make_arguments(rng, stock, images, filters)
        except ValueError as error:
            with pytest.raises(ValueError) as raised:
                functions[0](images, filters)
            assert str(raised.value).split("\nApply")[0] == str(error).split("\nApply")[0]
            continue
        compared += 1
        for function, expected, values in zip(functions, stock, arguments, strict=True):
            result = expected(*values)
            np.testing.assert_allclose(
                function(*values), result, rtol=tolerance, atol=tolerance * abs(result).max()
            )
    assert compared


@FLOATS
@pytest.mark.parametrize(
    "images, filters",
    [
        # More terms than a panel, more filters than the columns of a panel, and one image.
        ((1, 70, 9, 9), (100, 70, 3, 3)),
        # Tops of one position; a panel has the positions of several images.
        ((130, 3, 5, 5), (20, 3, 5, 5)),
        # Many rows of the top, and a large filter.
        ((2, 2, 90, 70), (3, 2, 31, 17)),
        ((3, 1, 40, 200), (2, 1, 1, 1)),
    ],
)
def test_sizes_of_blocks(monkeypatch, dtype, images, filters, require_equal_results):
    rng = np.random.RandomState(32)
    functions = compile_ops(dtype)
    stock = compile_stock_ops(monkeypatch, dtype)
    arguments = make_arguments(rng, stock, *make_arrays(rng, dtype, images, filters))
    tolerance = {"float32": 1e-4, "float64": 1e-12}[dtype]
    for function, expected, values in zip(functions, stock, arguments, strict=True):
        result = expected(*values)
        np.testing.assert_allclose(
            function(*values), result, rtol=tolerance, atol=tolerance * abs(result).max()
        )
        require_equal_results(functools.partial(function, *values))


@FLOATS
def test_arrays_with_any_strides(dtype):
    rng = np.random.RandomState(33)
    functions = compile_ops(dtype, border_mode="half")
    arguments = make_arguments(
        rng, functions, *make_arrays(rng, dtype, (3, 4, 9, 12), (5, 4, 3, 3))
    )
    for function, values in zip(functions, arguments, strict=True):
        expected = function(*values)
        for layout in (
            np.asfortranarray,
            lambda array: np.ascontiguousarray(array[::-1, :, ::-1])[::-1, :, ::-1],
            lambda array: np.repeat(array, 2, axis=3)[..., ::2],
        ):
            result = function(layout(values[0]), layout(values[1]), *values[2:])
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_values_that_are_not_finite_stay_in_their_outputs(monkeypatch, value):
    """Padding, and lanes that overlap or are not used, do not spread infinity and NaN."""
    rng = np.random.RandomState(34)
    functions = compile_ops("float64", border_mode="half")
    stock = compile_stock_ops(monkeypatch, "float64", border_mode="half")
    images, filters = make_arrays(rng, "float64", (2, 3, 7, 9), (4, 3, 3, 3))
    arguments = make_arguments(rng, stock, images, filters)
    images[0, 1, 2, 3] = images[1, 0, -1, -1] = filters[1, 0, 2, 0] = value
    for function, expected, values in zip(functions, stock, arguments, strict=True):
        np.testing.assert_allclose(function(*values), expected(*values), rtol=1e-12, atol=1e-12)


def test_empty_images_give_gradients_of_zero():
    functions = compile_ops("float32")
    images, filters = np.ones((0, 2, 5, 5), "float32"), np.ones((3, 2, 2, 2), "float32")
    top = np.ones((0, 3, 4, 4), "float32")
    assert functions[0](images, filters).shape == (0, 3, 4, 4)
    np.testing.assert_array_equal(
        functions[2](images, top, np.array([2, 2])), np.zeros_like(filters)
    )


def test_correlations_need_no_module():
    images, filters = tensor.ftensor4(), tensor.ftensor4()
    loss = tensor.sqr(tensor.nnet.conv2d(images, filters)).sum()
    gradients = tensor.grad(loss, [images, filters])
    # The thunks use Theano's threads instead of OpenMP.
    with theano.configparser.change_flags(openmp=True):
        nodes = theano.function([images, filters], gradients).maker.fgraph.apply_nodes
    assert {op.__name__ for op in OPS} <= {type(node.op).__name__ for node in nodes}
    for node in nodes:
        if type(node.op) in OPS:
            missing = {}
            node.op.c_linker(node, []).add_missing(missing)
            assert missing == {}
