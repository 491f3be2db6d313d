"""Random streams: a function draws anew in each call, and a seed gives the same numbers again.

Prints:
    another in each call: True
    the same without updates: True
    the same of the same seed: True
    of 10000, the mean is 0.5 or so: True
"""

import theano
from theano.sandbox.rng_mrg import MRG_RandomStreams


def draws(count, **options):
    """Return a function that draws numbers between 0 and 1."""
    return theano.function([], MRG_RandomStreams(seed=7).uniform((count,)), **options)


draw = draws(3)
first, second = draw(), draw()
still = draws(3, no_default_updates=True)
print("another in each call:", (first != second).all())
print("the same without updates:", (still() == still()).all())
print("the same of the same seed:", (draws(3)() == first).all())
print("of 10000, the mean is 0.5 or so:", abs(draws(10000)().mean() - 0.5) < 0.02)
