"""Reuse memory: the optimizer makes ops in-place, and a function may overwrite a mutable input.

Prints:
    in place: Gemm{inplace}
    the weights are [[3. 3.] [3. 3.]]
    kept: [0. 1.]
    overwritten: [1. 2.]
"""

import numpy
import theano
import theano.tensor as T

x = T.matrix("x")
ones = numpy.ones((2, 2), theano.config.floatX)
weights = theano.shared(ones, "weights")
step = theano.function([x], updates=[(weights, weights + T.dot(x, x))])
for node in step.maker.fgraph.toposort():
    if getattr(node.op, "destroy_map", None):
        print("in place:", node.op)
step(ones)
print("the weights are", str(weights.get_value()).replace("\n", ""))

v = T.vector("v")
for name, mutable in (("kept", False), ("overwritten", True)):
    vector = numpy.arange(2, dtype=theano.config.floatX)
    theano.function([theano.In(v, mutable=mutable, borrow=mutable)], v + 1)(vector)
    print(f"{name}: {vector}")
