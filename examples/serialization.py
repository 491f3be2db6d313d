"""Pickle a function with its shared variables; the copy continues with their values.

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
again = pickle.loads(pickle.dumps(tick, protocol=pickle.HIGHEST_PROTOCOL))
print("after:", again())
