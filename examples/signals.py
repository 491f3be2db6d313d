"""Find an edge in an image with a convolution, and halve the image with pooling.

Prints:
    [[0. 0. 1. 0. 0.]
     [0. 0. 1. 0. 0.]]
    [[0. 1. 0.]]
"""

import numpy
import theano
import theano.tensor as T
from theano.tensor.signal.conv import conv2d
from theano.tensor.signal.pool import pool_2d

image, kernel = T.matrices("image", "kernel")
edges = conv2d(image, kernel)
pooled = pool_2d(edges, (2, 2), ignore_border=False)
picture = numpy.zeros((2, 6), theano.config.floatX)
picture[:, 3:] = 1
for value in theano.function([image, kernel], [edges, pooled])(
    picture, numpy.array([[1, -1]], theano.config.floatX)
):
    print(value)
