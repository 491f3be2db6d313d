"""Graphs that contain all ops of Theano's gpuarray back end, in floatX.

compile.py compiles the graphs, but does not run them. Each function of ``ALL`` returns a list of
outputs.
"""

import theano
import theano.tensor as T
from pygpu.gpuarray import dtype_to_typecode
from theano import scalar
from theano.gpuarray import (
    basic_ops,
    blas,
    blocksparse,
    dnn,
    elemwise,
    extra_ops,
    multinomial,
    neighbours,
    nnet,
    pool,
    reduction,
    rng_mrg,
    sort,
    subtensor,
)
from theano.gpuarray.fuse_loops import make_program
from theano.gpuarray.fused_loops import GpuFusedLoops
from theano.gpuarray.take_rows import (
    GpuIncrementCheckedRows,
    GpuTakeCheckedRows,
    GpuTakeRows,
)
from theano.gpuarray.type import GpuArrayType
from theano.tensor.nnet.sigm import scalar_sigmoid

FLOAT = theano.config.floatX


def on_device(ndim, dtype=FLOAT):
    """Return a new input variable on the device."""
    return GpuArrayType(dtype, (False,) * ndim)()


def transfers():
    x, n = on_device(2), T.lscalar()
    return [
        basic_ops.GpuFromHost(None)(T.TensorType(FLOAT, (False, False))()),
        basic_ops.host_from_gpu(x),
        basic_ops.GpuToGpu(None)(x),
        basic_ops.gpu_contiguous(x),
        basic_ops.GpuAlloc(None)(x, n, 3, 4),
        basic_ops.GpuAllocEmpty(FLOAT, None)(n, 3),
        basic_ops.GpuReshape(1)(x, [-1]),
        basic_ops.GpuJoin()(0, x, x),
        *basic_ops.GpuSplit(2)(x, 0, [1, 1]),
        basic_ops.GpuEye(FLOAT, None)(n, n, 0),
        basic_ops.GpuTri(FLOAT, None)(n, n, 0),
    ]


def products():
    vector, matrix, stack = on_device(1), on_device(2), on_device(3)
    one, indices = T.constant(1, dtype=FLOAT), T.lmatrix()
    return [
        blas.GpuDot22()(matrix, matrix),
        blas.GpuGemm()(matrix, one, matrix, matrix, one),
        blas.GpuGemmBatch()(stack, one, stack, stack, one),
        blas.GpuGemv()(vector, one, matrix, vector, one),
        blas.GpuGer()(matrix, one, vector, vector),
        blocksparse.gpu_sparse_block_gemv(stack, on_device(4), stack, indices, indices),
        blocksparse.gpu_sparse_block_outer(on_device(4), stack, stack, indices, indices),
    ]


def loops():
    x = on_device(2)
    unary = [scalar.exp, scalar.log, scalar.tanh, scalar_sigmoid, scalar.erf, scalar.sqrt]
    unary += [elemwise.gpu_erfinv, elemwise.gpu_erfcinv]
    binary = [scalar.add, scalar.true_div, scalar.pow, scalar.int_div, scalar.mod, scalar.lt]
    outputs = [elemwise.GpuElemwise(op)(x) for op in unary]
    outputs += [elemwise.GpuElemwise(op)(x, x) for op in binary]
    return [*outputs, elemwise.GpuDimShuffle((False, False), (1, "x", 0))(x)]


def reductions():
    outputs = []
    for op in (scalar.add, scalar.mul, scalar.maximum, scalar.minimum):
        for mask in ((1,), (0, 1), (1, 0), (1, 1), (0, 1, 0), (1, 0, 1), (1, 1, 0), (0, 0, 1, 1)):
            x = on_device(len(mask))
            axes = [axis for axis, reduced in enumerate(mask) if reduced]
            reduce = elemwise.GpuCAReduceCuda(op, axes, mask)
            if reduce.supports_c_code([x]):
                outputs.append(reduce(x))
    x = on_device(2)
    outputs += reduction.GpuMaxAndArgmax((1,))(x)
    for kind in (x, on_device(1)):
        outputs += sort.GpuTopKOp(axis=0, sorted=False)(kind, T.lscalar())
    return outputs


def indices():
    x, y, i = on_device(2), on_device(1), T.lscalar()
    rows, mask = on_device(1, "int64"), on_device(1, "bool")
    first = [i, slice(None)]
    outputs = [
        subtensor.GpuSubtensor(first)(x, i),
        subtensor.GpuIncSubtensor(first)(x, y, i),
        subtensor.GpuIncSubtensor(first, set_instead_of_inc=True)(x, y, i),
        GpuTakeRows()(x, rows),
        GpuTakeCheckedRows()(x, rows, T.lvector()),
        GpuIncrementCheckedRows()(x, x, rows, T.lvector()),
        subtensor.GpuAdvancedIncSubtensor1()(x, x, rows),
        subtensor.GpuAdvancedIncSubtensor1_dev20()(x, x, rows),
        subtensor.GpuAdvancedSubtensor()(x, rows, rows),
        subtensor.GpuAdvancedIncSubtensor()(x, y, rows, rows),
        subtensor.GpuAdvancedBooleanSubtensor()(x, mask),
        subtensor.GpuAdvancedBooleanIncSubtensor()(x, x, mask),
        subtensor.GpuExtractDiag(view=True)(x),
        subtensor.GpuAllocDiag()(y),
        neighbours.GpuImages2Neibs("valid")(on_device(4), [2, 2], [1, 1]),
    ]
    return outputs


def fused():
    """Return the outputs of one fused kernel: an elementwise sum, and an incremented array.

    The two outputs have different shapes. For float16, return no outputs.
    """
    if FLOAT == "float16":
        return []
    x, y, start = on_device(2), on_device(2), scalar.int64()
    add = elemwise.GpuElemwise(scalar.add)(x, y)
    joined = basic_ops.GpuJoin()(1, add, x)
    bounds = [slice(None), slice(scalar.int64, scalar.int64)]
    incremented = subtensor.GpuIncSubtensor(bounds)(
        joined, add, start, scalar.constant(9, dtype="int64")
    )
    outputs = [add, incremented]
    inputs = [x, y, joined.owner.inputs[0], *incremented.owner.inputs[2:]]
    nodes = [variable.owner for variable in (add, joined, incremented)]
    program, operands = make_program(nodes, inputs, outputs)
    return GpuFusedLoops(program)(*operands, return_list=True)


def classes():
    x, b, labels = on_device(2), on_device(1), on_device(1, "int64")
    return [
        nnet.GpuSoftmax()(x),
        nnet.GpuSoftmaxWithBias()(x, b),
        *nnet.GpuCrossentropySoftmaxArgmax1HotWithBias()(x, b, labels),
        nnet.GpuCrossentropySoftmax1HotWithBiasDx()(b, x, labels),
    ]


def samples():
    x, u = on_device(2), on_device(1)
    return [
        *rng_mrg.GPUA_mrg_uniform.new(on_device(2, "int32"), 1, FLOAT, (T.lscalar(),)),
        multinomial.GPUAMultinomialFromUniform("int64")(x, u),
    ]


def not_float16():
    """Return the outputs of ops without float16; return no outputs if FLOAT is float16.

    These ops have no kernel for float16, or their C code calculates with ga_half, a struct.
    """
    if FLOAT == "float16":
        return []
    images, volumes = on_device(4), on_device(5)
    return [
        blas.GpuCorrMM()(images, images),
        blas.GpuCorrMM_gradWeights()(images, images),
        blas.GpuCorrMM_gradInputs()(images, images),
        blas.GpuCorr3dMM()(volumes, volumes),
        blas.GpuCorr3dMM_gradWeights()(volumes, volumes),
        blas.GpuCorr3dMM_gradInputs()(volumes, volumes),
        elemwise.GpuCAReduceCPY(scalar.add, [0])(on_device(2)),
    ]


def only_float32():
    """Return the outputs of ops that support only float32; return none for another FLOAT."""
    if FLOAT != "float32":
        return []
    x, u = on_device(2), on_device(1)
    return [
        *(extra_ops.GpuCumOp(axis, mode="add")(x) for axis in (0, 1)),
        extra_ops.GpuCumOp(0, mode="mul")(x),
        multinomial.GPUAChoiceFromUniform("int64")(x, u, T.iscalar()),
    ]


def pools():
    outputs = []
    for ndim in (2, 3):
        x, ws = on_device(ndim + 2), (2,) * ndim
        outputs.append(pool.GpuPool(True, mode="max", ndim=ndim)(x, ws))
        outputs.append(pool.GpuPool(True, mode="average_inc_pad", ndim=ndim)(x, ws))
        outputs.append(pool.GpuMaxPoolGrad(True, mode="max", ndim=ndim)(x, x, x, ws))
        grad = pool.GpuAveragePoolGrad(True, mode="average_inc_pad", ndim=ndim)
        outputs.append(grad(x, x, ws))
        outputs.append(pool.GpuDownsampleFactorMaxGradGrad(True, ndim=ndim)(x, x, x, ws))
        outputs.append(pool.GpuMaxPoolRop(True, ndim=ndim)(x, x, ws))
    return outputs


def cudnn_convolutions():
    outputs = []
    for x in (on_device(4), on_device(5)):
        spatial = (1,) * (x.ndim - 2)
        desc = dnn.GpuDnnConvDesc("valid", spatial, spatial, precision=FLOAT)(x.shape)
        for algo in ("none", "guess_once", "time_on_shape_change"):
            outputs += [
                op(algo=algo)(x, x, x, desc)
                for op in (dnn.GpuDnnConv, dnn.GpuDnnConvGradW, dnn.GpuDnnConvGradI)
            ]
    return outputs


def cudnn_layers():
    x, statistics = on_device(4), on_device(4)
    dropped = dnn.dropout(x, 0.5)[0]
    return [
        dropped,
        theano.grad(dropped.sum(), x),
        dnn.GpuDnnPoolDesc(ws=(2, 2), stride=(1, 1), mode="max", pad=(0, 0))(),
        dnn.GpuDnnPool("max")(x, (2, 2), (1, 1), (0, 0)),
        dnn.GpuDnnPoolGrad("max")(x, x, x, (2, 2), (1, 1), (0, 0)),
        dnn.GpuDnnSoftmax("accurate", "channel")(x),
        dnn.GpuDnnSoftmaxGrad("accurate", "channel")(x, x),
        *dnn.GpuDnnBatchNorm("spatial")(x, statistics, statistics),
        dnn.GpuDnnBatchNormInference("spatial")(x, *[statistics] * 4),
        *dnn.GpuDnnBatchNormGrad("spatial")(x, x, *[statistics] * 3),
        *dnn.GpuDnnReduction("maximum", (1,), FLOAT, FLOAT, True)(on_device(2)),
    ]


def cudnn_transformer():
    x, theta = on_device(4), on_device(3)
    grid = dnn.GpuDnnTransformerGrid()(theta, x.shape)
    return [
        dnn.GpuDnnTransformerSampler()(x, grid),
        *dnn.GpuDnnTransformerGradI()(x, grid, x),
        dnn.GpuDnnTransformerGradT()(grid),
    ]


def cudnn_recurrent():
    x, state, weights = on_device(3), on_device(3), on_device(1)
    outputs = [dnn.DnnVersion()(), *dnn._DropoutDescriptor(None)(0, 1, None)]
    for mode in ("rnn_tanh", "lstm"):
        block, typecode = dnn.RNNBlock(FLOAT, 3, 1, mode), dtype_to_typecode(FLOAT)
        settings = ("linear", "unidirectional", mode, FLOAT)
        outputs.append(dnn._RNNDescriptor(None)(3, 1, block.ddesc, *settings))
        outputs.append(dnn._RNNParamSize(None)(block.desc, (2, 3), typecode))
        outputs += dnn._RNNSplitParams(mode)(weights, block.desc, 0, (2, 3), typecode)
        applied = block.apply(weights, x, state, *([state] if mode == "lstm" else []))
        outputs += [*applied, *theano.grad(applied[0].sum(), [weights, x])]
    return outputs


ALL = (
    transfers,
    products,
    loops,
    reductions,
    indices,
    fused,
    classes,
    samples,
    not_float16,
    only_float32,
    pools,
    cudnn_convolutions,
    cudnn_layers,
    cudnn_transformer,
    cudnn_recurrent,
)
