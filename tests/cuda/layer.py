"""Compile a layer of theano_fast.nn, and its gradients, for the stubs' device: ``layer.py MODE``.

MODE is a mode of cuDNN, such as ``lstm``. The batch is the first dimension of x and y, but the
second dimension for cuDNN. Therefore the arrays and the gradients that cuDNN reads are not in C
order, unless the graph copies them.

The program prints JSON with names of op classes: ``compiled``, the compiled ops; ``read``, the ops
whose float32 results each cuDNN op reads; ``scan``, the ops of the layer with backend="scan";
``double``, the ops of a layer in float64.
"""

import json
import sys

import compile as stubs
import theano
import theano.tensor as T
from theano import gof


def list_op_names(nodes):
    """Return the sorted names of the classes of the nodes' ops."""
    return sorted({type(node.op).__name__ for node in nodes})


def list_graph_ops(outputs):
    """Return the sorted names of the op classes of a graph that is not compiled."""
    return list_op_names(gof.graph.io_toposort(gof.graph.inputs(outputs), outputs))


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
            read[type(node.op).__name__] = list_op_names(owner for owner in floats if owner)
    double = nn.RNN(sys.argv[1], 5, 7, dtype="float64")(T.dtensor3())
    report = {
        "compiled": list_op_names(compiled),
        "read": read,
        "scan": list_graph_ops(list(layer(x, backend="scan"))),
        "double": list_graph_ops(list(double)),
    }
    print(json.dumps(report))
