"""Compute a sum with reduce, squares with map, and a running sum with scan.

Prints:
    15.0
    [ 1.  4.  9. 16. 25.]
    [ 1.  3.  6. 10. 15.]
"""

import numpy
import theano
import theano.tensor as T

x = T.vector("x")
zero = T.zeros((), x.dtype)
total, _ = theano.reduce(lambda element, before: before + element, x, zero)
squares, _ = theano.map(lambda element: element**2, x)
running, _ = theano.scan(lambda element, before: before + element, x, zero)
for value in theano.function([x], [total, squares, running])(
    numpy.arange(1, 6, dtype=theano.config.floatX)
):
    print(value)
