"""Compile the modules that the environment comes with: `shipped_modules.py DIRECTORY`.

They are of the ops that many programs use and whose C code no program changes, in
float32 and float64, as the optimizer puts them into a graph: inputs are variables, or
constants where it makes them so.
"""

import itertools
import multiprocessing
import sys

import numpy as np
import theano
from theano import scalar, tensor
from theano.gof import shipped
from theano.sandbox import rng_mrg
from theano.tensor import blas, blas_c, elemwise, nnet, subtensor
from theano.tensor.linkers import shipped_loops
from theano.tensor.nnet import corr
from theano.tensor.signal import pool

DTYPES = ["float32", "float64"]
INDICES = ["int32", "int64"]


def variable(ndim, dtype):
    return tensor.TensorType(dtype, [False] * ndim)()


def scale(value, dtype):
    return tensor.constant(np.asarray(value, dtype))


def factors(dtype):
    """Yield what alpha and beta of a product are: variables, constants, or one constant."""
    one = scale(1, dtype)
    yield one, one
    for alpha, beta in itertools.product([one, variable(0, dtype)], [scale(0, dtype), variable(0, dtype)]):
        yield alpha, beta


def products(dtype):
    scalar, vector, matrix = (lambda n=n: variable(n, dtype) for n in range(3))
    yield blas._dot22(matrix(), matrix())
    yield blas._dot22scalar(matrix(), matrix(), scalar())
    yield blas._dot22scalar(matrix(), matrix(), scale(2, dtype))
    for alpha, beta in factors(dtype):
        for gemm in blas.gemm_inplace, blas.gemm_no_inplace:
            yield gemm(matrix(), alpha, matrix(), matrix(), beta)
        for gemv in blas_c.cgemv_inplace, blas_c.cgemv_no_inplace:
            yield gemv(vector(), alpha, matrix(), vector(), beta)
    for alpha in scale(1, dtype), scalar():
        for ger in blas_c.cger_inplace, blas_c.cger_no_inplace:
            yield ger(matrix(), alpha, vector(), vector())
    yield blas.batched_dot(variable(3, dtype), variable(3, dtype))


def networks(dtype):
    vector, matrix = variable(1, dtype), variable(2, dtype)
    yield nnet.softmax_op(matrix)
    yield nnet.softmax_grad(matrix, variable(2, dtype))
    yield nnet.softmax_with_bias(matrix, vector)
    yield nnet.logsoftmax_op(matrix)
    for index in INDICES:
        one_hot = variable(1, index)
        yield nnet.crossentropy_softmax_argmax_1hot_with_bias(matrix, vector, one_hot)[0]
        yield nnet.crossentropy_softmax_1hot_with_bias_dx(vector, matrix, one_hot)


def rows(dtype):
    for inplace, ndim, index in itertools.product([False, True], [1, 2, 3], INDICES):
        op = subtensor.AdvancedIncSubtensor1(inplace, set_instead_of_inc=True)
        yield op(variable(ndim, dtype), variable(ndim, dtype), variable(1, index))


def convolutions(dtype):
    image, kernel, top = (variable(4, dtype) for _ in range(3))
    sizes = [variable(0, "int64") for _ in range(2)]
    for border, stride in itertools.product(["valid", "half", "full"], [1, 2]):
        how = border, (stride, stride)
        yield corr.CorrMM(*how)(image, kernel)
        yield corr.CorrMM_gradInputs(*how)(kernel, top, sizes if stride > 1 else None)
        known = stride == 1 and border != "half"
        yield corr.CorrMM_gradWeights(*how)(image, top, None if known else sizes)


def poolings(dtype):
    image, pooled, top = (variable(4, dtype) for _ in range(3))
    # The size is the stride.
    size = tensor.constant([2, 2])
    where = size, size, tensor.constant([0, 0])
    yield pool.Pool(True)(image, *where)
    yield pool.MaxPoolGrad(True)(image, pooled, top, *where)
    for mode in "average_inc_pad", "average_exc_pad":
        yield pool.Pool(True, mode)(image, *where)
        yield pool.AveragePoolGrad(True, mode)(image, top, *where)


def random_numbers(dtype):
    for ndim in 1, 2, 3, 4:
        type = tensor.TensorType(dtype, [False] * ndim)
        op = rng_mrg.mrg_uniform(type, inplace=True)
        yield op(tensor.imatrix(), variable(1, "int64"))[1]


def arrays(scalar_op, *dtypes):
    """Yield what an operation does of numbers, and of arrays, each broadcast or not."""
    for pattern in [None, *itertools.product([False, True], repeat=len(dtypes))]:
        broadcast = [()] * len(dtypes) if pattern is None else [(each,) for each in pattern]
        inputs = [tensor.TensorType(*each)() for each in zip(dtypes, broadcast)]
        output = elemwise.Elemwise(scalar_op)(*inputs)
        yield output
        for i, input in enumerate(inputs):
            if input.type == output.type:
                yield elemwise.Elemwise(scalar_op, {0: i})(*inputs)


def operations(dtype):
    one, two, three = ([dtype] * n for n in range(1, 4))
    s = scalar
    functions = s.neg, s.abs_, s.inv, s.sqr, s.sqrt, s.exp, s.log, s.log1p, s.tanh, s.sin, s.cos, s.sgn
    for op in *functions, nnet.sigm.scalar_sigmoid, nnet.sigm.scalar_softplus:
        yield from arrays(op, *one)
    comparisons = s.lt, s.le, s.gt, s.ge, s.eq, s.neq
    for op in s.add, s.sub, s.mul, s.true_div, s.pow, s.maximum, s.minimum, s.second, *comparisons:
        yield from arrays(op, *two)
    for op in s.add, s.mul:
        yield from arrays(op, *three)
    yield from arrays(s.switch, "bool", *two)
    for other in ("bool", "int8", "int64", *DTYPES):
        yield from arrays(getattr(s, f"convert_to_{dtype}"), other)


def integers(dtype):
    s = scalar
    for other in dtype, "int8":
        for op in s.add, s.sub, s.mul, s.int_div, s.maximum, s.minimum, s.lt, s.le, s.gt, s.ge, s.eq, s.neq:
            yield from arrays(op, dtype, other)
    yield from arrays(s.switch, "bool", dtype, dtype)


def sums(dtype):
    for op in elemwise.Sum(), elemwise.Prod(), *map(elemwise.CAReduce, [scalar.maximum, scalar.minimum]):
        yield op(variable(1, dtype))


def linkers(kinds, dtypes=DTYPES):
    for kind, dtype in itertools.product(kinds, dtypes):
        for output in kind(dtype):
            node = output.owner
            node.op.prepare_node(node, None, None, "c")
            yield node.op.c_linker(node, [])


def modules():
    yield from linkers([products, networks, rows, convolutions, poolings, random_numbers])
    # The flag is of the ops that OpenMP makes others of.
    theano.config.openmp = True
    yield from linkers([convolutions, poolings])
    theano.config.openmp = False


def write(level, directory):
    shipped.write(modules(), level, directory)
    loops = itertools.chain(linkers([operations, sums]), linkers([integers], ["int64"]))
    shipped_loops.write(loops, level, directory)


with multiprocessing.Pool(len(shipped.LEVELS)) as pool:
    pool.starmap(write, [(level, sys.argv[1]) for level in shipped.LEVELS], chunksize=1)
