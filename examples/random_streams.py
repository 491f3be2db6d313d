"""Draw random numbers: each call gives new numbers, and the same seed gives the same numbers.

Prints:
    each call gives new numbers: True
    without updates, each call gives the same numbers: True
    the same seed gives the same numbers: True
    the mean of 10000 numbers is about 0.5: True
"""

import theano
from theano.sandbox.rng_mrg import MRG_RandomStreams


def make_draw(count, **options):
    """Return a function that draws numbers between 0 and 1."""
    return theano.function([], MRG_RandomStreams(seed=7).uniform((count,)), **options)


draw = make_draw(3)
first, second = draw(), draw()
draw_same = make_draw(3, no_default_updates=True)
print("each call gives new numbers:", (first != second).all())
print(
    "without updates, each call gives the same numbers:",
    (draw_same() == draw_same()).all(),
)
print("the same seed gives the same numbers:", (make_draw(3)() == first).all())
print("the mean of 10000 numbers is about 0.5:", abs(make_draw(10000)().mean() - 0.5) < 0.02)
