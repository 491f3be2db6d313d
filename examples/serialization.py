"""Pickle a function with its shared variables; the copy continues with the pickled values.

Prints:
    before: 3.0
    after: 4.0
"""

import pickle

import theano

count = theano.shared(0.0, "count")
tick = theano.function([], count + 1, updates=[(count, count + 1)])
tick()
tick()
print("before:", tick())
tick_copy = pickle.loads(pickle.dumps(tick, protocol=pickle.HIGHEST_PROTOCOL))
print("after:", tick_copy())
