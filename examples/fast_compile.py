"""Compare FAST_COMPILE with FAST_RUN: FAST_COMPILE optimizes less, so more nodes remain.

Prints:
    FAST_COMPILE: ... nodes
    FAST_RUN: ... nodes
    fewer nodes: True, equal results: True
"""

import numpy
import theano
import theano.tensor as T

x = T.vector("x")
cost = T.log(1 + T.exp(-x)).sum()
nodes, values = {}, {}
for mode in ("FAST_COMPILE", "FAST_RUN"):
    function = theano.function([x], [cost, theano.grad(cost, x)], mode=mode)
    nodes[mode] = len(function.maker.fgraph.apply_nodes)
    values[mode] = function(numpy.arange(3, dtype=theano.config.floatX))
    print(f"{mode}: {nodes[mode]} nodes")
same = all(map(numpy.allclose, *values.values()))
print(f"fewer nodes: {nodes['FAST_RUN'] < nodes['FAST_COMPILE']}, equal results: {same}")
