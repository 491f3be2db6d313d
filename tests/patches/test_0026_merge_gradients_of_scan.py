"""The Scan that is a Scan's gradient computes nothing twice.

Without the patch, its graph had what the gradients share once for each of them.
"""

import numpy as np
import theano
import theano.tensor as tt
from theano.gof.graph import io_toposort
from theano.scan_module import scan_op, scan_utils

OUTPUTS = 6


def cost(x, weights):
    def step(*states):
        hidden = tt.tanh(tt.dot(sum(states[:-1]), states[-1]))
        return [tt.nnet.sigmoid(hidden * number) for number in range(1, OUTPUTS + 1)]

    states, _ = theano.scan(
        step, outputs_info=[x] * OUTPUTS, non_sequences=[weights], n_steps=3, strict=True
    )
    return sum(state[-1].sum() for state in states)


def test_no_node_twice():
    variables = [tt.dvector(), tt.dmatrix()]
    nodes = io_toposort(variables, tt.grad(cost(*variables), variables))
    # The gradient's is the last one.
    scan = [node.op for node in nodes if isinstance(node.op, scan_op.Scan)][-1]
    seen = set()
    for node in io_toposort(scan.inputs, scan.outputs):
        inputs = tuple(
            each.merge_signature() if isinstance(each, theano.Constant) else each
            for each in node.inputs
        )
        assert (node.op, inputs) not in seen
        seen.add((node.op, inputs))


def test_right_gradients():
    random = np.random.RandomState(0)
    theano.gradient.verify_grad(
        cost, [random.normal(size=4), random.normal(size=(4, 4))], rng=random, mode="FAST_COMPILE"
    )


def test_constants_and_outputs():
    x = tt.dvector("x")
    one = [tt.constant(1.0) for _ in range(2)]
    first, second = (tt.exp(x) + each.dimshuffle("x") for each in one)
    merged = scan_utils.merge_graph([x], [first, second, x])
    assert merged[0] is merged[1]
    assert merged[0] is first
    assert merged[2] is x
