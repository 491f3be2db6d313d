"""graph/order-kept.patch does not copy the set of a graph's variables.

Without the patch, a graph copies the set of its variables for each node that it imports.
"""

import tracemalloc

from theano import tensor
from theano.gof.graph import io_toposort

x = tensor.dvector()


def test_a_set_is_not_copied():
    variables = {x, *(tensor.dscalar() for _ in range(10000))}
    y = tensor.exp(x)
    tracemalloc.start()
    try:
        order = io_toposort(variables, [y])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert order == [y.owner]
    assert peak < 50000


def test_the_order_is_depth_first():
    a, b = tensor.exp(x), tensor.tanh(x)
    c = b * a
    d = tensor.sqrt(c)
    e = d + a
    assert [node.outputs[0] for node in io_toposort([x], [e])] == [a, b, c, d, e]


def test_nodes_that_compute_inputs_are_not_sorted():
    a = tensor.exp(x)
    b = tensor.tanh(a)
    assert io_toposort({a}, [b]) == [b.owner]
    assert io_toposort([a], [b, a]) == [b.owner]
