"""Test of the theano package: it compiles functions without a warning, with NumPy's results.

The recipe runs this script with ``python -W error``.
"""

import os
import sys

os.environ["THEANO_FLAGS"] = f"blas.ldflags=-L{sys.prefix}/lib -l:libblas.so.3"

import numpy as np
import theano
from theano import tensor
from theano.scan_module import scan_steps  # Without this extension, Scan runs in Python.


def uses_only_c(function):
    """Return whether all thunks of a function are in C."""
    return all(hasattr(thunk, "cthunk") for thunk in function.fn.thunks)


x, w = tensor.dmatrix("x"), tensor.dmatrix("w")
X, W = np.random.RandomState(0).rand(2, 5, 5)

layer = theano.function([x, w], tensor.tanh(tensor.dot(x, w)) + 1)
assert uses_only_c(layer)
np.testing.assert_allclose(layer(X, W), np.tanh(X @ W) + 1)

gradient = theano.function([x, w], tensor.grad(tensor.sqr(tensor.dot(x, w)).sum(), w))
assert uses_only_c(gradient)
np.testing.assert_allclose(gradient(X, W), 2 * X.T @ (X @ W))

sums, _ = theano.scan(lambda row, total: row + total, x, tensor.zeros_like(x[0]))
np.testing.assert_allclose(theano.function([x], sums)(X), X.cumsum(axis=0))

assert np.__version__ in theano.config.compiledir
