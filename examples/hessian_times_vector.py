"""Compute the Hessian times a vector without the Hessian: with Rop, or with two gradients.

Prints:
    by Rop:       [ 6. 24.]
    by gradients: [ 6. 24.]
    by Hessian:   [ 6. 24.]
"""

import numpy
import theano
import theano.tensor as T

x, v = T.vectors("x", "v")
cost = (x**3).sum()
slope = theano.grad(cost, x)
products = {
    "by Rop:": T.Rop(slope, x, v),
    "by gradients:": theano.grad(T.sum(slope * v), x),
    "by Hessian:": T.dot(theano.gradient.hessian(cost, x), v),
}
values = [numpy.array([1, 2], theano.config.floatX)] * 2
for name, product in products.items():
    print(f"{name:<13}", theano.function([x, v], product)(*values))
