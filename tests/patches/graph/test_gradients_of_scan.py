"""graph/push-out-in-one-pass.patch: a Scan's gradient computes nothing twice and is searched once.

Without the patch, the graph of a Scan's gradient repeats shared computations for each input. Each
copy is searched for the outputs of a step, to replace them by the stored outputs. The search misses
an output that is computed from another output.
"""

import numpy as np
import theano
import theano.tensor as tt
from theano.gof.graph import io_toposort, ops
from theano.scan_module import scan_op, scan_utils
from theano.scan_module.graphs import replace_computations
from theano.scan_module.push_out_of_gradients import is_gradient_of_recurrence

OUTPUTS = 6


def cost(x, weights):
    """Return the sum of the last states of a recurrence with six states."""

    def step(*states):
        hidden = tt.tanh(tt.dot(sum(states[:-1]), states[-1]))
        return [tt.nnet.sigmoid(hidden * number) for number in range(1, OUTPUTS + 1)]

    states, _ = theano.scan(
        step, outputs_info=[x] * OUTPUTS, non_sequences=[weights], n_steps=3, strict=True
    )
    return sum(state[-1].sum() for state in states)


def test_the_gradient_computes_no_node_twice():
    variables = [tt.dvector(), tt.dmatrix()]
    nodes = io_toposort(variables, tt.grad(cost(*variables), variables))
    # The last Scan computes the gradient.
    scan = [node.op for node in nodes if isinstance(node.op, scan_op.Scan)][-1]
    computations = set()
    for node in io_toposort(scan.inputs, scan.outputs):
        inputs = tuple(
            input_.merge_signature() if isinstance(input_, theano.Constant) else input_
            for input_ in node.inputs
        )
        assert (node.op, inputs) not in computations
        computations.add((node.op, inputs))


def test_gradients_equal_finite_differences():
    random = np.random.RandomState(0)
    theano.gradient.verify_grad(
        cost, [random.normal(size=4), random.normal(size=(4, 4))], rng=random, mode="FAST_COMPILE"
    )


def test_equal_constants_are_merged_and_outputs_kept():
    x = tt.dvector("x")
    one = [tt.constant(1.0) for _ in range(2)]
    first, second = (tt.exp(x) + pair.dimshuffle("x") for pair in one)
    merged = scan_utils.merge_graph([x], [first, second, x])
    assert merged[0] is merged[1]
    assert merged[0] is first
    assert merged[2] is x


def test_shared_computations_remain_shared():
    x, y, z = tt.dvectors("x", "y", "z")
    exponential = tt.exp(x)
    common = exponential * 2
    outputs = [common + 1, tt.sin(common), x - y, tt.cos(tt.exp(x))]
    # The last computation to replace, cos(exp(x)), contains the first, exp(x). No node computes x,
    # so x is not replaced.
    replaced = replace_computations(outputs, [exponential, x, tt.cos(exponential)], [y, z, z])
    assert [node.op for node in ops([x, y, z], replaced)].count(tt.mul) == 1
    function = theano.function([x, y, z], replaced, mode="FAST_COMPILE")
    results = function([1.0], [2.0], [3.0])
    assert [result.tolist() for result in results] == [[5.0], [np.sin(4.0)], [-1.0], [3.0]]


def test_the_gradient_computes_no_state_again():
    """The gradient reads the stored states, even a state that is computed from another state."""
    first, second = tt.dvectors("first", "second")
    states, _ = theano.scan(
        lambda *states: [tt.tanh(sum(states)), tt.exp(tt.tanh(sum(states)))],
        outputs_info=[first, second],
        n_steps=3,
    )
    slopes = tt.grad(sum(state[-1].sum() for state in states), [first, second])
    (scan,) = {
        node.op for node in io_toposort([first, second], slopes) if is_gradient_of_recurrence(node)
    }
    computed = {node.op for node in io_toposort(scan.inputs, scan.outputs)}
    assert not computed & {tt.tanh, tt.exp}


def test_different_nodes_are_not_merged():
    """Nodes differ in the order of inputs, an output's number, a property, or a constant."""
    x, y = tt.dvectors("x", "y")
    parts = tt.split(x, [1, 1], 2)
    outputs = [x - y, y - x, *parts, x.sum(), x.sum(keepdims=True), x[:1], x[1:], x[0], x[1]]
    outputs += [x * tt.constant(np.array([1, 2], dtype)) for dtype in ("int8", "float64")]
    outputs += [x * tt.constant(np.array([1, value])) for value in (3.0, np.nan, 2**53, 2**53 + 1)]
    outputs += [tt.maximum(x, y), tt.minimum(x, y), tt.cumsum(x), tt.cumprod(x)]
    merged = scan_utils.merge_graph([x, y], outputs)
    assert len(set(merged)) == len(outputs)
    values = np.array([2.0, 3.0]), np.array([5.0, 7.0])
    mode = theano.Mode("py", None)
    actual, expected = (
        theano.function([x, y], graph, mode=mode)(*values) for graph in (merged, outputs)
    )
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)
