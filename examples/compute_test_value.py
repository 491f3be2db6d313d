"""Find a wrong shape with compute_test_value: the error names the line, before compilation.

Prints:
    hidden is (5, 4)
    the error is at the line of: wrong = T.dot(hidden, x)
"""

import traceback

import numpy
import theano
import theano.tensor as T

theano.config.compute_test_value = "raise"
x = T.matrix("x")
x.tag.test_value = numpy.zeros((5, 3), theano.config.floatX)
weights = theano.shared(numpy.zeros((3, 4), theano.config.floatX), "weights")
hidden = T.dot(x, weights)
print("hidden is", hidden.tag.test_value.shape)
try:
    wrong = T.dot(hidden, x)
except ValueError as error:
    print("the error is at the line of:", traceback.extract_tb(error.__traceback__)[0].line)
