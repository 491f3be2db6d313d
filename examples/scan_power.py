"""Use scan as a loop: compute the k-th power of each element.

Prints:
    [ 0.  1. 16. 81.]
"""

import numpy
import theano
import theano.tensor as T

base, k = T.vector("base"), T.iscalar("k")
powers, updates = theano.scan(
    lambda before, base: before * base,
    outputs_info=T.ones_like(base),
    non_sequences=base,
    n_steps=k,
)
# Scan stores only the last step, because the function returns only this step.
power = theano.function([base, k], powers[-1], updates=updates)
print(power(numpy.arange(4, dtype=theano.config.floatX), 4))
