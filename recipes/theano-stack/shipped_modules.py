"""Compile the shipped modules: ``shipped_modules.py DIRECTORY`` writes them into DIRECTORY.

Many programs use these ops, and the C code of each op is the same in all programs. Ops on floats
are compiled for float32 and float64.

Each generator that takes a dtype yields the output variables of nodes. The node of each variable
becomes one module (``theano/gof/shipped.py``) or one loop
(``theano/tensor/linkers/shipped_loops.py``). As in an optimized graph, an input is a constant where
the optimizer inserts a constant; otherwise it is a variable.
"""

import itertools
import multiprocessing
import sys

import numpy as np
import theano
from theano import scalar, tensor
from theano.gof import shipped
from theano.sandbox import rng_mrg
from theano.tensor import blas, elemwise, nnet, subtensor
from theano.tensor.linkers import shipped_loops

DTYPES = ["float32", "float64"]
INDICES = ["int32", "int64"]


def make_variable(ndim, dtype):
    """Return a tensor variable with ``ndim`` dimensions, none of them broadcastable."""
    return tensor.TensorType(dtype, [False] * ndim)()


def make_constant(value, dtype):
    """Return a scalar constant of the dtype."""
    return tensor.constant(np.asarray(value, dtype))


def make_factors(dtype):
    """Yield the pairs (alpha, beta) of alpha * product + beta * output.

    In the first pair, alpha and beta are the same constant 1, because the optimizer merges equal
    constants. In the other pairs, alpha is 1 or a variable, and beta is 0 or a variable.
    """
    one = make_constant(1, dtype)
    yield one, one
    alphas = one, make_variable(0, dtype)
    betas = make_constant(0, dtype), make_variable(0, dtype)
    yield from itertools.product(alphas, betas)


def make_products(dtype):
    """Yield products of matrices. Products of vectors have precompiled thunks."""
    scalar, matrix = (lambda n=n: make_variable(n, dtype) for n in (0, 2))
    yield blas._dot22(matrix(), matrix())
    yield blas._dot22scalar(matrix(), matrix(), scalar())
    yield blas._dot22scalar(matrix(), matrix(), make_constant(2, dtype))
    for alpha, beta in make_factors(dtype):
        for gemm in blas.gemm_inplace, blas.gemm_no_inplace:
            yield gemm(matrix(), alpha, matrix(), matrix(), beta)
    for ndims in (3, 3), (3, 2), (2, 3):
        yield blas.batched_dot(*(make_variable(ndim, dtype) for ndim in ndims))


def make_network_ops(dtype):
    """Yield the softmax and cross-entropy ops of neural networks, and their gradients."""
    vector, matrix = make_variable(1, dtype), make_variable(2, dtype)
    yield nnet.softmax_op(matrix)
    yield nnet.softmax_grad(matrix, make_variable(2, dtype))
    yield nnet.softmax_with_bias(matrix, vector)
    yield nnet.logsoftmax_op(matrix)
    for index in INDICES:
        one_hot = make_variable(1, index)
        yield nnet.crossentropy_softmax_argmax_1hot_with_bias(matrix, vector, one_hot)[0]
        yield nnet.crossentropy_softmax_1hot_with_bias_dx(vector, matrix, one_hot)


def make_row_assignments(dtype):
    """Yield assignments to rows of an array; a vector of indices selects the rows."""
    for inplace, ndim, index in itertools.product([False, True], [1, 2, 3], INDICES):
        op = subtensor.AdvancedIncSubtensor1(inplace, set_instead_of_inc=True)
        yield op(make_variable(ndim, dtype), make_variable(ndim, dtype), make_variable(1, index))


def make_random_numbers(dtype):
    """Yield arrays of uniform random numbers, with 1 to 4 dimensions."""
    for ndim in 1, 2, 3, 4:
        type = tensor.TensorType(dtype, [False] * ndim)
        op = rng_mrg.mrg_uniform(type, inplace=True)
        yield op(tensor.imatrix(), make_variable(1, "int64"))[1]


def make_elementwise(scalar_op, *dtypes):
    """Yield the outputs of an Elemwise for scalars, and for vectors in each broadcast pattern.

    For each input with the output's type, also yield the output of an op that overwrites it.

    Args:
        scalar_op: the scalar op of the Elemwise.
        dtypes: the dtype of each input.
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


def make_float_operations(dtype):
    """Yield elementwise operations on floats, and conversions to the dtype."""
    one, two, three = ([dtype] * n for n in range(1, 4))
    s = scalar
    functions = (
        s.neg,
        s.abs_,
        s.inv,
        s.sqr,
        s.sqrt,
        s.exp,
        s.log,
        s.log1p,
        s.tanh,
        s.sin,
        s.cos,
        s.sgn,
    )
    for op in *functions, nnet.sigm.scalar_sigmoid, nnet.sigm.scalar_softplus:
        yield from make_elementwise(op, *one)
    comparisons = s.lt, s.le, s.gt, s.ge, s.eq, s.neq
    for op in s.add, s.sub, s.mul, s.true_div, s.pow, s.maximum, s.minimum, s.second, *comparisons:
        yield from make_elementwise(op, *two)
    for op in s.add, s.mul:
        yield from make_elementwise(op, *three)
    yield from make_elementwise(s.switch, "bool", *two)
    for converted_dtype in ("bool", "int8", "int64", *DTYPES):
        yield from make_elementwise(getattr(s, f"convert_to_{dtype}"), converted_dtype)


def make_vector_operations(dtype):
    """Yield operations on vectors that chains (``theano/tensor/linkers/chains.py``) compute.

    Chains need only operands that are not broadcast.
    """
    s = scalar
    operations = [
        (s.clip, dtype, dtype, dtype),
        *((op, dtype) for op in (s.ceil, s.floor, s.expm1, s.round_half_away_from_zero)),
        *((getattr(s, f"convert_to_{dtype}"), name) for name in ("int16", "int32", "uint8")),
        *((getattr(s, f"convert_to_{name}"), dtype) for name in ("int8", "int16", "int32", "int64")),
    ]
    for op, *dtypes in operations:
        yield elemwise.Elemwise(op)(*(make_variable(1, name) for name in dtypes))


def make_integer_operations(dtype):
    """Yield elementwise operations on integers of the dtype.

    The second operand has the dtype or is an int8, Theano's dtype of small constants.
    """
    s = scalar
    for second_dtype in dtype, "int8":
        for op in (
            s.add,
            s.sub,
            s.mul,
            s.int_div,
            s.maximum,
            s.minimum,
            s.lt,
            s.le,
            s.gt,
            s.ge,
            s.eq,
            s.neq,
        ):
            yield from make_elementwise(op, dtype, second_dtype)
    yield from make_elementwise(s.switch, "bool", dtype, dtype)
    for converted_dtype in "bool", "int8", "int16", "int32", "uint8", "float32", "float64":
        yield from make_elementwise(getattr(s, f"convert_to_{dtype}"), converted_dtype)


def make_reductions(dtype):
    """Yield the sum, product, maximum and minimum of a vector."""
    for op in (
        elemwise.Sum(),
        elemwise.Prod(),
        *map(elemwise.CAReduce, [scalar.maximum, scalar.minimum]),
    ):
        yield op(make_variable(1, dtype))


def make_linkers(generators, dtypes=DTYPES):
    """Yield the C linker of each node.

    Args:
        generators: functions of a dtype that yield the nodes' output variables.
        dtypes: the dtypes to call each generator with.
    """
    for generate, dtype in itertools.product(generators, dtypes):
        for output in generate(dtype):
            node = output.owner
            node.op.prepare_node(node, None, None, "c")
            yield node.op.c_linker(node, [])


def make_module_linkers():
    """Yield the C linkers of the nodes that become modules, not loops."""
    yield from make_linkers(
        [
            make_products,
            make_network_ops,
            make_row_assignments,
            make_random_numbers,
        ]
    )


def write_level(level, directory):
    """Compile the modules and loops for a level of processors, such as "avx512"."""
    shipped.write_modules(make_module_linkers(), level, directory)
    loops = itertools.chain(
        make_linkers([make_float_operations, make_vector_operations, make_reductions]),
        make_linkers([make_integer_operations], ["int64"]),
    )
    shipped_loops.write_library(loops, level, directory)


with multiprocessing.Pool(len(shipped.LEVELS)) as workers:
    workers.starmap(write_level, [(level, sys.argv[1]) for level in shipped.LEVELS], chunksize=1)
