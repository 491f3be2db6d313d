"""graph/clone-in-one-pass.patch: theano.clone copies each node once, in graphs of any depth.

Without the patch, theano.clone copies the graph twice, by recursion.
"""

import numpy as np
import theano
import theano.tensor as tt
from theano.gof import graph


def test_each_node_is_copied_once(monkeypatch):
    x, y = tt.dvectors("x", "y")
    product = x * x
    out = product + product
    copied = []
    clone = graph.Apply.clone
    monkeypatch.setattr(graph.Apply, "clone", lambda node: copied.append(node.op) or clone(node))
    cloned = theano.clone(out, replace={x: y})
    assert copied == [product.owner.op, out.owner.op]
    assert graph.inputs([cloned]) == [y]


def test_a_replacement_may_depend_on_the_replaced_variable():
    x, y = tt.dscalars("x", "y")
    swapped = theano.clone([x - y, x], replace={x: y * 2, y: x * 3})
    function = theano.function([x, y], swapped, mode="FAST_COMPILE")
    assert [float(value) for value in function(1, 10)] == [17, 20]


def test_one_of_several_outputs_is_replaced():
    x, y = tt.dvectors("x", "y")
    first, second = tt.split(x, [1, 1], 2)
    cloned = theano.clone([first, second], replace={first: y})
    assert cloned[0] is y
    assert cloned[1].owner.op == second.owner.op


def test_the_clone_shares_inputs_unless_share_inputs_is_false():
    x = theano.shared(np.ones(2), "x")
    assert graph.inputs([theano.clone(x + 1)])[0] is x
    assert graph.inputs([theano.clone(x + 1, share_inputs=False)])[0] is not x


def test_a_deep_graph_is_cloned():
    x = tt.dscalar("x")
    out = x
    for _ in range(5000):
        out = -out
    assert graph.inputs([theano.clone(out)]) == [x]
