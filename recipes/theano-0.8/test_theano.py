"""Check that Theano compiles functions to C, and that the functions return NumPy's results."""

import os
import sys

os.environ["THEANO_FLAGS"] = "blas.ldflags=-L%s/lib -l:libblas.so.3" % sys.prefix

import numpy as np
import theano
from theano import tensor


def uses_only_c(function):
    return all(hasattr(thunk, "cthunk") for thunk in function.fn.thunks)


assert theano.__version__ == "0.8.2"
x, w = tensor.dmatrix("x"), tensor.dmatrix("w")
X, W = np.random.RandomState(0).rand(2, 5, 5)

layer = theano.function([x, w], tensor.tanh(tensor.dot(x, w)) + 1)
assert uses_only_c(layer)
np.testing.assert_allclose(layer(X, W), np.tanh(X.dot(W)) + 1)

gradient = theano.function([x, w], tensor.grad(tensor.sqr(tensor.dot(x, w)).sum(), w))
assert uses_only_c(gradient)
np.testing.assert_allclose(gradient(X, W), 2 * X.T.dot(X.dot(W)))

sums, _ = theano.scan(lambda row, total: row + total, x, tensor.zeros_like(x[0]))
np.testing.assert_allclose(theano.function([x], sums)(X), X.cumsum(axis=0))
# Check that Scan's C module can be imported. Without it, Theano would run scans in Python.
from theano.scan_module import scan_perform_ext
