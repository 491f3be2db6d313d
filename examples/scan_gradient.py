"""Compute the gradient of a scan that applies tanh three times; compare with finite differences.

Prints:
    slope 0.167707
    finite difference 0.167707
"""

import numpy
import theano
import theano.tensor as T

x = T.dscalar("x")
states, _ = theano.scan(T.tanh, outputs_info=x, n_steps=3)
value = theano.function([x], states[-1])
slope = theano.function([x], theano.grad(states[-1], x))
step = 1e-6
difference = (value(1 + step) - value(1 - step)) / (2 * step)
print(f"slope {slope(1.0):.6f}")
print(f"finite difference {difference:.6f}")
assert numpy.isclose(slope(1.0), difference)
