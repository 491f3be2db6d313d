"""The Hessian times a vector without the Hessian, by Rop of the gradient and by the gradient twice.

Prints:
    by Rop:       [ 6. 24.]
    by gradients: [ 6. 24.]
    by all of it: [ 6. 24.]
"""

import numpy
import theano
import theano.tensor as T

x, v = T.vectors("x", "v")
cost = (x**3).sum()
slope = theano.grad(cost, x)
ways = {
    "by Rop:": T.Rop(slope, x, v),
    "by gradients:": theano.grad(T.sum(slope * v), x),
    "by all of it:": T.dot(theano.gradient.hessian(cost, x), v),
}
values = [numpy.array(each, theano.config.floatX) for each in ([1, 2], [1, 2])]
for name, way in ways.items():
    print(f"{name:<13}", theano.function([x, v], way)(*values))
