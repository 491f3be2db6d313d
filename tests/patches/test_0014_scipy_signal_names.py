"""scipy 1.8 renamed the modules of scipy.signal's internals.

Without the patch, Theano takes scipy.signal for missing and no convolution runs in Python code.
"""

import numpy as np
import theano
from theano import tensor
from theano.tensor.nnet.conv import ConvOp

IMAGES = np.random.RandomState(0).rand(2, 3, 6, 6)
FILTERS = np.random.RandomState(1).rand(4, 3, 3, 3)


def test_convolution_in_python():
    x, w = tensor.dtensor4s("x", "w")
    convolved = tensor.nnet.conv2d(x, w, border_mode="half", subsample=(2, 2))
    outputs = [convolved, *tensor.grad(tensor.sqr(convolved).sum(), [x, w])]
    in_python = theano.function([x, w], outputs, mode=theano.Mode("py", None))
    in_c = theano.function([x, w], outputs)
    for found, expected in zip(in_python(IMAGES, FILTERS), in_c(IMAGES, FILTERS), strict=True):
        np.testing.assert_allclose(found, expected)


def test_old_convolution_in_python():
    x, w = tensor.dtensor4s("x", "w")
    convolved = ConvOp((3, 6, 6), (3, 3), nkern=4, bsize=2)(x, w)
    in_python = theano.function([x, w], convolved, mode=theano.Mode("py", None))
    in_c = theano.function([x, w], convolved)
    np.testing.assert_allclose(in_python(IMAGES, FILTERS), in_c(IMAGES, FILTERS))
