"""Compile a layer of theano_fast.nn, and its gradients, for the device: ``layer.py MODE``.

x and y have the batch as first dimension, so that neither they nor their gradients are in C order.
Prints classes of ops as JSON: the compiled ops; the ops whose results each cuDNN op reads; the ops
of the same layer by scan; the ops of a layer in float64.
"""

import json
import sys

import compile as stubs
import theano
import theano.tensor as T
from theano import gof


def names(nodes):
    return sorted({type(node.op).__name__ for node in nodes})


def graph(outputs):
    return names(gof.graph.io_toposort(gof.graph.inputs(outputs), outputs))


if __name__ == "__main__":
    stubs.start()
    from theano_fast import nn

    layer = nn.RNN(sys.argv[1], 5, 7, 2, True, dtype="float32")
    x, factors = T.ftensor3s(2)
    y, *last = layer(x.dimshuffle(1, 0, 2))
    cost = (y.dimshuffle(1, 0, 2) * factors).sum() + sum((state**2).sum() for state in last)
    slopes = T.grad(cost, [x, layer.weights])
    compiled = theano.function([x, factors], [y, *last, *slopes]).maker.fgraph.toposort()
    read = {}
    for node in compiled:
        if type(node.op).__name__.startswith("GpuDnnRNN"):
            floats = [v.owner for v in node.inputs if getattr(v, "dtype", "") == "float32"]
            read[type(node.op).__name__] = names(owner for owner in floats if owner)
    double = nn.RNN(sys.argv[1], 5, 7, dtype="float64")(T.dtensor3())
    shown = {
        "compiled": names(compiled),
        "read": read,
        "scan": graph(list(layer(x, backend="scan"))),
        "double": graph(list(double)),
    }
    print(json.dumps(shown))
