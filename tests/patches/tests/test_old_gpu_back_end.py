"""theano.sandbox.cuda, the old GPU back end, reports that it is absent and names its replacement.

Other tests import modules of Theano 0.6 to 0.9 under their old names, which recipes/theano/src
provides.
"""

# ruff: noqa: PLC0415 - the tests test imports

import pickle

import numpy as np
import pytest
import theano
import theano.tensor as T

IMAGES = np.random.RandomState(0).rand(2, 3, 7, 8)


def compute(output):
    """Compute an output that depends on constants only."""
    return theano.function([], output, mode=theano.Mode("py", None))()


def test_the_old_back_end_is_reported_as_absent():
    from theano.sandbox import cuda
    from theano.sandbox.cuda.type import CudaNdarrayType

    assert cuda.cuda_available is cuda.cuda_enabled is False
    assert not cuda.dnn.dnn_available()
    assert not isinstance(T.fmatrix().type, CudaNdarrayType)
    assert not hasattr(cuda, "no_such_name")


@pytest.mark.parametrize(
    ("code", "instead"),
    [
        ("cuda.use('gpu0')", "device=cuda0"),
        ("cuda.CudaNdarray([1.0])", "NumPy array"),
        ("cuda.CudaNdarrayType((False,))", "TensorType"),
        ("cuda.float32_shared_constructor(1)", "theano.shared"),
        ("cuda.dnn.GpuDnnConv('valid')(1)", "theano.gpuarray"),
        ("cuda.blas.GpuCorrMM()(1)", "theano.gpuarray"),
        ("cuda.basic_ops.gpu_alloc(1, 2)", "theano.gpuarray"),
        ("cuda.device_properties(0)", "remove the call"),
        ("cuda.opt.local_gpu_elemwise_0(None)", "remove the call"),
        ("cuda.handle_shared_float32(True)", "set the flag device=cuda"),
        ("cuda.rng_curand.CURAND_RandomStreams(1)", "MRG_RandomStreams"),
        ("cuda.fmatrix('x')", "theano.tensor.fmatrix"),
    ],
)
def test_errors_name_the_replacement(code, instead):
    from theano.sandbox import cuda

    with pytest.raises(ImportError, match=instead) as raised:
        exec(code, {"cuda": cuda})
    assert "\n" not in str(raised.value)


def test_programs_can_compare_and_subclass_old_ops():
    from theano.sandbox.cuda import GpuOp, HostFromGpu
    from theano.sandbox.cuda.basic_ops import GpuElemwise, gpu_from_host, host_from_gpu
    from theano.sandbox.cuda.blas import GpuElemwise as SameElemwise
    from theano.sandbox.cuda.opt import local_optimizer, register_opt, register_specialize_device

    class MyOp(GpuElemwise):
        pass

    assert GpuElemwise is SameElemwise
    assert isinstance(MyOp(), GpuOp)
    assert isinstance(host_from_gpu, HostFromGpu)
    assert not isinstance((T.matrix() + 1).owner.op, (GpuElemwise, HostFromGpu))

    @register_opt()
    @register_specialize_device("fast_compile")
    @local_optimizer([gpu_from_host, GpuElemwise])
    def local_rewrite(node):
        return False

    assert local_rewrite.transform(None) is False


def test_transfers_return_cpu_variables_unchanged():
    from theano.sandbox.cuda.basic_ops import gpu_contiguous, gpu_from_host, host_from_gpu

    if theano.gpuarray.pygpu_activated:
        pytest.skip("a device is in use")
    x = T.constant(IMAGES)
    for transfer in (gpu_contiguous, gpu_from_host, host_from_gpu):
        np.testing.assert_array_equal(compute(transfer(x)), IMAGES)


@pytest.mark.parametrize("conv_mode", ["conv", "cross"])
def test_dnn_conv_computes_on_the_cpu(conv_mode):
    from theano.sandbox.cuda.dnn import dnn_conv

    filters = np.random.RandomState(1).rand(4, 3, 2, 3)
    result = compute(dnn_conv(T.constant(IMAGES), T.constant(filters), conv_mode=conv_mode))
    flipped = filters[:, :, ::-1, ::-1] if conv_mode == "conv" else filters
    windows = np.lib.stride_tricks.sliding_window_view(IMAGES, (2, 3), axis=(2, 3))
    np.testing.assert_allclose(result, np.einsum("bcijkl,ockl->boij", windows, flipped))


def test_conv2d_fft_computes_on_the_cpu():
    from theano.sandbox.cuda.fftconv import conv2d_fft

    filters = T.constant(np.random.RandomState(1).rand(4, 3, 2, 3))
    convolved = compute(conv2d_fft(T.constant(IMAGES), filters, border_mode="full"))
    expected = T.nnet.conv2d(T.constant(IMAGES), filters, border_mode="full")
    np.testing.assert_array_equal(convolved, compute(expected))


def test_pooling_works_under_its_old_names():
    from theano.sandbox.cuda.dnn import dnn_pool
    from theano.tensor.signal import downsample

    x = T.constant(IMAGES)
    expected = IMAGES[:, :, :6].reshape(2, 3, 3, 2, 4, 2).max((3, 5))
    pooled = downsample.max_pool_2d(x, ds=(2, 2), ignore_border=True, st=None, padding=(0, 0))
    op = downsample.DownsampleFactorMax((2, 2), ignore_border=True)
    for output in (pooled, op(x), dnn_pool(x, (2, 2), stride=(2, 2))):
        np.testing.assert_array_equal(compute(output), expected)
    assert op.out_shape((2, 3, 7, 8), (2, 2), ignore_border=True) == [2, 3, 3, 4]
    gradient = downsample.DownsampleFactorMaxGrad((2, 2), True)(x, pooled, T.ones_like(pooled))
    np.testing.assert_array_equal(compute(gradient), compute(theano.grad(pooled.sum(), x)))


def test_conv3D_takes_channels_last():
    from theano.tensor.nnet.Conv3D import conv3D
    from theano.tensor.nnet.ConvGrad3D import convGrad3D
    from theano.tensor.nnet.ConvTransp3D import convTransp3D

    random = np.random.RandomState(2)
    videos, filters, bias = random.rand(2, 5, 6, 7, 3), random.rand(4, 2, 3, 2, 3), random.rand(4)
    V, W = T.constant(videos), T.constant(filters)
    output = conv3D(V, W, bias, (1, 1, 1))
    windows = np.lib.stride_tricks.sliding_window_view(videos, (2, 3, 2), axis=(1, 2, 3))
    expected = np.einsum("brctiklm,oklmi->brcto", windows, filters) + bias
    np.testing.assert_allclose(compute(output), expected)
    weights = np.random.RandomState(3).rand(*expected.shape)
    to_videos, to_filters = theano.grad((output * weights).sum(), [V, W])
    result = convTransp3D(W, np.zeros(3), (1, 1, 1), weights, (5, 6, 7))
    np.testing.assert_allclose(compute(result), compute(to_videos))
    result = convGrad3D(V, (1, 1, 1), filters.shape, weights)
    np.testing.assert_allclose(compute(result), compute(to_filters))


def test_modules_can_be_imported_under_their_old_names():
    import theano.compat.six.moves.urllib.parse
    import theano.gpuarray
    import theano.sandbox.gpuarray
    from theano.compat import six
    from theano.compat.python2x import OrderedDict
    from theano.compat.six.moves import cPickle, xrange
    from theano.gof.python25 import partial
    from theano.sandbox.downsample import max_pool_2d
    from theano.sandbox.linalg.kron import kron

    assert theano.sandbox.gpuarray is theano.gpuarray
    assert (xrange, cPickle, six.PY3) == (range, pickle, True)
    assert all(map(callable, (OrderedDict, partial, max_pool_2d, kron)))
    with pytest.raises(NotImplementedError, match=r"theano\.scan"):
        __import__("theano.sandbox.scan", fromlist=["scan"]).scan(None)


def test_the_error_of_an_old_pickle_names_the_flag(monkeypatch):
    from theano.sandbox.cuda import type as old

    values = np.arange(3, dtype="float32")

    class Array:
        def __reduce__(self):
            return old.CudaNdarray_unpickler, (values,)

    text = pickle.dumps(Array())
    with pytest.raises(ImportError, match=r"experimental\.unpickle_gpu_on_cpu=True"):
        pickle.loads(text)
    monkeypatch.setattr(theano.config.experimental, "unpickle_gpu_on_cpu", True)
    np.testing.assert_array_equal(pickle.loads(text), values)


def test_an_old_shared_variable_is_loaded_on_the_cpu(monkeypatch):
    from theano.sandbox.cuda import type as old
    from theano.sandbox.cuda import var

    gpu_type = old.CudaNdarrayType.__new__(old.CudaNdarrayType)
    shared = var.CudaNdarraySharedVariable.__new__(var.CudaNdarraySharedVariable)
    cpu = theano.shared(np.arange(3, dtype="float32"), name="w")
    with pytest.raises(ImportError, match="CudaNdarrays"):
        gpu_type.__setstate__({"broadcastable": (False,)})
    monkeypatch.setattr(theano.config.experimental, "unpickle_gpu_on_cpu", True)
    gpu_type.__setstate__({"broadcastable": (False,), "name": None})
    assert gpu_type == cpu.type
    shared.__setstate__(dict(vars(cpu), type=gpu_type))
    np.testing.assert_array_equal(theano.function([], shared * 2)(), [0, 2, 4])
