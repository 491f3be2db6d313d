"""Compile the C modules that the package ships: ``shipped_modules.py DIRECTORY``.

The modules implement ops that many programs use and whose C code depends on no program, in float32 and
float64. The nodes are built as the optimizer builds them: an input is a constant where the optimizer
inserts a constant, and otherwise a variable.

The functions below yield output variables of nodes. Each node becomes one module or loop.
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
    """Return a variable without broadcastable dimensions."""
    return tensor.TensorType(dtype, [False] * ndim)()


def make_constant(value, dtype):
    """Return a scalar constant of the dtype."""
    return tensor.constant(np.asarray(value, dtype))


def factors(dtype):
    """Yield pairs (alpha, beta) of a product's factors: one shared constant, constants or variables."""
    one = make_constant(1, dtype)
    yield one, one
    alphas = one, variable(0, dtype)
    betas = make_constant(0, dtype), variable(0, dtype)
    yield from itertools.product(alphas, betas)


def products(dtype):
    """Yield products of matrices and vectors, which BLAS computes."""
    scalar, vector, matrix = (lambda n=n: variable(n, dtype) for n in range(3))
    yield blas._dot22(matrix(), matrix())
    yield blas._dot22scalar(matrix(), matrix(), scalar())
    yield blas._dot22scalar(matrix(), matrix(), make_constant(2, dtype))
    for alpha, beta in factors(dtype):
        for gemm in blas.gemm_inplace, blas.gemm_no_inplace:
            yield gemm(matrix(), alpha, matrix(), matrix(), beta)
        for gemv in blas_c.cgemv_inplace, blas_c.cgemv_no_inplace:
            yield gemv(vector(), alpha, matrix(), vector(), beta)
    for alpha in make_constant(1, dtype), scalar():
        for ger in blas_c.cger_inplace, blas_c.cger_no_inplace:
            yield ger(matrix(), alpha, vector(), vector())
    yield blas.batched_dot(variable(3, dtype), variable(3, dtype))


def networks(dtype):
    """Yield the softmax and cross-entropy ops of neural networks, and their gradients."""
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
    """Yield assignments to rows of a vector, a matrix or a tensor, selected by a vector of indices."""
    for inplace, ndim, index in itertools.product([False, True], [1, 2, 3], INDICES):
        op = subtensor.AdvancedIncSubtensor1(inplace, set_instead_of_inc=True)
        yield op(variable(ndim, dtype), variable(ndim, dtype), variable(1, index))


def convolutions(dtype):
    """Yield convolutions, and their gradients with respect to images and kernels."""
    image, kernel, top = (variable(4, dtype) for _ in range(3))
    sizes = [variable(0, "int64") for _ in range(2)]
    for border, stride in itertools.product(["valid", "half", "full"], [1, 2]):
        parameters = border, (stride, stride)
        yield corr.CorrMM(*parameters)(image, kernel)
        yield corr.CorrMM_gradInputs(*parameters)(kernel, top, sizes if stride > 1 else None)
        needs_sizes = stride > 1 or border == "half"
        yield corr.CorrMM_gradWeights(*parameters)(image, top, sizes if needs_sizes else None)


def poolings(dtype):
    """Yield maximum and average poolings, and their gradients."""
    image, pooled, top = (variable(4, dtype) for _ in range(3))
    size = tensor.constant([2, 2])
    # The stride equals the window's size, and there is no padding.
    window = size, size, tensor.constant([0, 0])
    yield pool.Pool(True)(image, *window)
    yield pool.MaxPoolGrad(True)(image, pooled, top, *window)
    for mode in "average_inc_pad", "average_exc_pad":
        yield pool.Pool(True, mode)(image, *window)
        yield pool.AveragePoolGrad(True, mode)(image, top, *window)


def random_numbers(dtype):
    """Yield arrays of uniform random numbers."""
    for ndim in 1, 2, 3, 4:
        type = tensor.TensorType(dtype, [False] * ndim)
        op = rng_mrg.mrg_uniform(type, inplace=True)
        yield op(tensor.imatrix(), variable(1, "int64"))[1]


def arrays(scalar_op, *dtypes):
    """Yield an Elemwise's output for scalars, and for vectors in each broadcast pattern.

    Where an input has the output's type, also yield the output of the in-place op.
    """
    for pattern in [None, *itertools.product([False, True], repeat=len(dtypes))]:
        if pattern is None:
            broadcastables = [()] * len(dtypes)
        else:
            broadcastables = [(broadcastable,) for broadcastable in pattern]
        inputs = [tensor.TensorType(*properties)() for properties in zip(dtypes, broadcastables)]
        output = elemwise.Elemwise(scalar_op)(*inputs)
        yield output
        for i, input in enumerate(inputs):
            if input.type == output.type:
                yield elemwise.Elemwise(scalar_op, {0: i})(*inputs)


def operations(dtype):
    """Yield elementwise operations on floats, and conversions to the dtype."""
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
    """Yield elementwise operations on integers."""
    s = scalar
    for other in dtype, "int8":
        for op in s.add, s.sub, s.mul, s.int_div, s.maximum, s.minimum, s.lt, s.le, s.gt, s.ge, s.eq, s.neq:
            yield from arrays(op, dtype, other)
    yield from arrays(s.switch, "bool", dtype, dtype)


def sums(dtype):
    """Yield the sum, product, maximum and minimum of a vector."""
    for op in elemwise.Sum(), elemwise.Prod(), *map(elemwise.CAReduce, [scalar.maximum, scalar.minimum]):
        yield op(variable(1, dtype))


def linkers(kinds, dtypes=DTYPES):
    """Yield the C linkers of all nodes that the functions ``kinds`` build for the dtypes."""
    for kind, dtype in itertools.product(kinds, dtypes):
        for output in kind(dtype):
            node = output.owner
            node.op.prepare_node(node, None, None, "c")
            yield node.op.c_linker(node, [])


def modules():
    """Yield the C linkers of whole modules."""
    yield from linkers([products, networks, rows, convolutions, poolings, random_numbers])
    # With OpenMP, these ops have other C code and thus other modules.
    theano.config.openmp = True
    yield from linkers([convolutions, poolings])
    theano.config.openmp = False


def write(level, directory):
    """Write the modules and loops for processors of a level."""
    shipped.write(modules(), level, directory)
    loops = itertools.chain(linkers([operations, sums]), linkers([integers], ["int64"]))
    shipped_loops.write(loops, level, directory)


with multiprocessing.Pool(len(shipped.LEVELS)) as workers:
    workers.starmap(write, [(level, sys.argv[1]) for level in shipped.LEVELS], chunksize=1)
