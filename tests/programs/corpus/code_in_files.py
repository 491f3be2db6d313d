"""Use ops with C code: a COp whose code is in a file, and an Op with code in a string.

The program computes a sparse code by iterative soft thresholding, and learns its dictionary.
"""

import numpy as np
import theano
import theano.tensor as T
from theano import gof
from theano.gof.params_type import ParamsType
from theano.scalar import float64

FEATURES, ATOMS, SAMPLES = 5, 7, 6
NUMBERS = np.random.RandomState(31)


class SoftThreshold(gof.COp):
    """Shrink elements by scale * limit towards zero."""

    __props__ = ("scale",)
    params_type = ParamsType(scale=float64)

    def __init__(self, scale):
        self.scale = scale
        super().__init__(["./soft_threshold.c"], "APPLY_SPECIFIC(soft_threshold)")

    def make_node(self, x, limit):
        x, limit = T.as_tensor_variable(x), T.as_tensor_variable(limit)
        assert limit.ndim == 0
        return gof.Apply(self, [x, limit], [x.type()])

    def infer_shape(self, node, shapes):
        return [shapes[0]]

    def grad(self, inputs, gradients):
        nonzero = T.neq(self(*inputs), 0)
        signs = T.sgn(inputs[0]) * nonzero
        return [gradients[0] * nonzero, -self.scale * (gradients[0] * signs).sum()]


class SquaredNorms(gof.Op):
    """The squared norms of a matrix's columns, in C code in a string and in Python."""

    __props__ = ()

    def make_node(self, x):
        x = T.as_tensor_variable(x)
        return gof.Apply(self, [x], [T.vector(dtype=x.dtype)])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = (inputs[0] ** 2).sum(axis=0)

    def infer_shape(self, node, shapes):
        return [(shapes[0][1],)]

    def c_headers(self):
        return ["<cmath>"]

    def c_support_code(self):
        return "static inline double squared(double x) { return std::pow(x, 2); }"

    def c_code(self, node, name, inputs, outputs, sub):
        (x,), (z,), fail = inputs, outputs, sub["fail"]
        return f"""
        npy_intp length_{name} = PyArray_DIM({x}, 1);
        Py_XDECREF({z});
        {z} = (PyArrayObject *)PyArray_ZEROS(1, &length_{name}, PyArray_TYPE({x}), 0);
        if ({z} == NULL) {{ {fail} }}
        for (npy_intp i = 0; i < PyArray_DIM({x}, 0); ++i)
            for (npy_intp j = 0; j < length_{name}; ++j)
                *(dtype_{z} *)PyArray_GETPTR1({z}, j) +=
                    squared(*(dtype_{x} *)PyArray_GETPTR2({x}, i, j));
        """

    def c_code_cache_version(self):
        return (1,)

    def grad(self, inputs, gradients):
        return [2 * inputs[0] * gradients[0].dimshuffle("x", 0)]


def results():
    """Yield the losses of learning, then codes."""
    soften = SoftThreshold(0.1)
    x, limit = T.matrix("x"), T.scalar("limit")
    value = NUMBERS.randn(FEATURES, ATOMS) / np.sqrt(FEATURES)
    dictionary = theano.shared(value.astype(theano.config.floatX))

    def step(code, x, limit, dictionary):
        slope = T.dot(T.dot(code, dictionary.T) - x, dictionary)
        return soften(code - 0.2 * slope, limit)

    codes, _ = theano.scan(
        step,
        outputs_info=T.zeros((x.shape[0], ATOMS)),
        non_sequences=[x, limit, dictionary],
        n_steps=4,
    )
    code = codes[-1]
    error = T.sqr(T.dot(code, dictionary.T) - x).sum(axis=1).mean()
    cost = error + 0.1 * abs(code).sum(axis=1).mean()
    cost += 0.01 * T.sqr(SquaredNorms()(dictionary) - 1).sum()
    slope, by_limit = T.grad(cost, [dictionary, limit])
    stepped = dictionary - 0.1 * slope
    train = theano.function(
        [x, limit],
        [cost, by_limit],
        updates=[(dictionary, stepped / T.sqrt(SquaredNorms()(stepped)))],
    )
    encode = theano.function([x, limit], [code, soften(x[:, ::-1].T, limit)])
    data = NUMBERS.randn(SAMPLES, FEATURES)
    for _ in range(5):
        yield [float(value) for value in train(data, 1.0)]
    yield [code.tolist() for code in encode(data, 2.0)]
