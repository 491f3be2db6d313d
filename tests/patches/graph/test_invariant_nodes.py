"""graph/invariant-nodes.patch computes invariant nodes once per call of a scan.

The results of an invariant node are the same in all steps. Without the patch, every step computes
such nodes again: for example, it transposes the weights for BLAS and computes their shapes.
"""

import numpy as np
import theano
from theano import tensor
from theano.gof.memory_use import MemoryUse
from theano.scan_module import replay
from theano.scan_module.scan_op import Scan


class Count(theano.Op):
    """An op that doubles its input and counts its calls."""

    __props__ = ()

    def __init__(self):
        self.calls = 0

    def make_node(self, x):
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        self.calls += 1
        outputs[0][0] = inputs[0] * 2


# The excluded optimizer would move invariant nodes out of the Scan.
MODE = theano.compile.get_mode("FAST_RUN").excluding("scanOp_pushout_nonseqs_ops")


def compile_scan(step, **arguments):
    """Compile a scan whose step reads a shared weight; return weight, function and Scan."""
    weight = theano.shared(np.arange(3.0))
    values, _ = theano.scan(lambda *args: step(weight, *args), mode=MODE, **arguments)
    function = theano.function([], values, mode=MODE)
    (node,) = [n for n in function.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    return weight, function, node.op


def find_invariant_nodes(scan):
    """Return the nodes that only the first step of a Scan computes."""
    return replay.find_invariant_nodes(scan, MemoryUse(scan.fn.fn.nodes))


def test_an_invariant_node_runs_once_per_call():
    count = Count()
    sequence = tensor.ones((5, 3))
    weight, function, _ = compile_scan(lambda w, x: x + count(w), sequences=sequence)
    assert function().tolist() == [[1, 3, 5]] * 5
    assert count.calls == 1
    weight.set_value(np.ones(3))
    assert function().tolist() == [[3, 3, 3]] * 5
    assert count.calls == 2


def test_the_repeated_mode_ends_with_the_call():
    """After a call, the virtual machine no longer skips the invariant nodes."""
    _, function, op = compile_scan(lambda w, x: x + Count()(w), sequences=tensor.ones((5, 3)))
    function()
    assert op.fn.fn.replay
    assert not op.fn.fn.repeated


def test_overwritten_results_are_not_invariant():
    count = Count()
    _, function, op = compile_scan(
        lambda w, x: tensor.inc_subtensor(count(w)[:1], x[:1]) ** 2, sequences=tensor.ones((4, 3))
    )
    assert function().tolist() == [[1, 4, 16]] * 4
    assert count.calls == 4
    (node,) = [n for n in op.fn.fn.nodes if isinstance(n.op, tensor.IncSubtensor)]
    assert node.op.inplace
    assert node.inputs[0].owner.op == count


def test_outputs_are_not_invariant():
    count = Count()
    _, function, _ = compile_scan(lambda w, x: [x + 1, count(w)], sequences=tensor.ones((4, 3)))
    assert function()[1].tolist() == [[0, 2, 4]] * 4


def test_transposed_weights_follow_the_shared_variable():
    matrix = theano.shared(np.eye(3) * 2)
    values, _ = theano.scan(lambda x: tensor.dot(x, matrix), tensor.ones((4, 3)))
    state, _ = theano.scan(
        lambda x, h: tensor.tanh(tensor.dot(h, matrix) + x), values, tensor.zeros((3,))
    )
    function = theano.function([], state)
    for factor in (2, 0.5):
        matrix.set_value(np.eye(3) * factor)
        expected = np.zeros(3)
        for row in function():
            expected = np.tanh(expected * factor + factor)
            np.testing.assert_allclose(row, expected, rtol=1e-14)
    scans = [n.op for n in function.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    names = {type(node.op).__name__ for op in scans for node in find_invariant_nodes(op)}
    assert "AllocEmpty" in names


def test_an_error_ends_the_repeated_mode():
    count = Count()
    _, function, op = compile_scan(
        lambda w, x, i: count(w)[i] + x[0], sequences=[tensor.ones((4, 3)), tensor.arange(4)]
    )
    try:
        function()
    except IndexError:
        assert not op.fn.fn.repeated
    else:
        raise AssertionError


def test_results_overwritten_through_a_view_are_not_invariant():
    """If a step overwrites a view of a node's result, each step computes the node."""
    for view in (lambda x: x[::-1], lambda x: x.dimshuffle(0, "x").T[0]):
        count = Count()
        _, function, _ = compile_scan(
            lambda w, x, c=count, v=view: tensor.inc_subtensor(v(c(w))[:1], x[:1]) ** 2,
            sequences=tensor.ones((4, 3)),
        )
        expected = np.array(view(tensor.constant(np.arange(3.0) * 2)).eval())
        expected[0] += 1
        assert function().tolist() == [(expected**2).tolist()] * 4


class Halves(theano.Op):
    """An op of two outputs: a view of the input, and a new array."""

    __props__ = ()

    def __init__(self):
        self.view_map = {0: [0]}

    def make_node(self, x):
        return theano.Apply(self, [x], [x.type(), x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0], outputs[1][0] = inputs[0], inputs[0] / 2


def test_a_node_with_one_invariant_output_is_not_invariant():
    """Each step computes a node if one of its outputs is not invariant.

    This output is an output of the step, or it is overwritten. The other output is only read.
    """
    _, function, _ = compile_scan(
        lambda w, x: [x + Halves()(w)[0], Halves()(w)[1], tensor.exp(x)],
        sequences=tensor.ones((3, 3)),
    )
    first, second, _ = function()
    assert first.tolist() == [[1, 2, 3]] * 3
    assert second.tolist() == [[0, 0.5, 1]] * 3
    _, function, _ = compile_scan(
        lambda w, x: tensor.inc_subtensor(Halves()(w)[1][:2], x[:2]) + Halves()(w)[0],
        sequences=tensor.ones((3, 3)),
    )
    assert function().tolist() == [[1, 2.5, 3]] * 3


def test_updated_variables_are_not_invariant():
    """A node that reads a shared variable is not invariant if each step updates the variable."""
    count, state = Count(), theano.shared(np.ones(2))
    values, updates = theano.scan(
        lambda: (count(state) + 1, {state: tensor.dot(tensor.eye(2) * 3, state)}),
        n_steps=3,
        mode=MODE,
    )
    function = theano.function([], values, updates=updates, mode=MODE)
    for first in (1, 27):
        assert function()[:, 0].tolist() == [2 * first * 3**i + 1 for i in range(3)]
    assert count.calls == 6


def test_values_of_a_failed_call_are_not_reused():
    """The next call does not use values that a failed call computed."""
    count, w, x = Count(), tensor.dvector(), tensor.lvector()
    values, _ = theano.scan(lambda i, w: count(w)[i], x, non_sequences=[w], mode=MODE)
    function = theano.function([w, x], values, mode=MODE)
    for scale in (1.0, 2.0):
        try:
            function(np.full(3, scale * 10), [0, 1, 7])
        except IndexError:
            assert function(np.full(3, scale), [0, 1, 2]).tolist() == [scale * 2] * 3
        else:
            raise AssertionError
