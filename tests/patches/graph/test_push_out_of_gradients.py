"""graph/push-out-in-one-pass.patch moves computations of sequences out of a scan's gradient.

Without the patch, each step of the gradient repeats parts of the recurrence, because Theano moves
only elementwise operations. Some operations that it moves are cheap: a fused loop would compute
them faster than it reads their results.
"""

import numpy as np
import pytest
import theano
from theano import scalar
from theano import tensor as tt
from theano.gof.graph import io_toposort
from theano.scan_module.buffers import reverse_buffer
from theano.scan_module.push_out_of_gradients import is_gradient_of_recurrence
from theano.tensor.elemwise import Elemwise, Sum
from theano.tensor.nnet.nnet import LogSoftmax, Softmax
from theano.tensor.subtensor import AdvancedSubtensor1, Subtensor

N = 4
INDICES = np.array([2, 0, 0, 3])

# Maps a name to an expression of a state and weights, the number of dimensions of the state, and
# the op of the expression that is moved out of the gradient.
COMPUTED = {
    "vector by matrix": (tt.dot, 1, tt.Dot),
    "matrix by vector": (lambda h, w: tt.dot(w, h), 1, tt.Dot),
    "vector by vector": (lambda h, w: tt.dot(h, w[0]), 1, tt.Dot),
    "matrix by matrix": (tt.dot, 2, tt.Dot),
    "matrix by weights' vector": (lambda h, w: tt.dot(h, w[0]), 2, tt.Dot),
    "vectors of a state": (lambda h, w: tt.dot(h, tt.exp(h)), 1, tt.Dot),
    "matrix by vector of a state": (lambda h, w: tt.dot(h, h[0]), 2, tt.Dot),
    "vector by matrix of a state": (lambda h, w: tt.dot(h[0], h), 2, tt.Dot),
    "sum": (lambda h, w: h.sum(), 1, Sum),
    "sum of columns": (lambda h, w: h.sum(axis=0), 2, Sum),
    "sum of rows": (lambda h, w: h.sum(axis=1, keepdims=True), 2, Sum),
    "softmax of a vector": (lambda h, w: tt.nnet.softmax(tt.shape_padleft(h))[0], 1, Softmax),
    "softmax": (lambda h, w: tt.nnet.softmax(h), 2, Softmax),
    "log-softmax": (lambda h, w: tt.nnet.logsoftmax(h), 2, LogSoftmax),
    "join": (lambda h, w: tt.concatenate([h, w[0], [1.0]])[1 : N + 1] ** 2, 1, tt.Join),
    "join of columns": (lambda h, w: tt.concatenate([w, h], axis=1)[:, 1 : N + 1] ** 2, 2, tt.Join),
    "slice": (lambda h, w: tt.exp(h)[::-1], 1, Subtensor),
    "slice of columns": (lambda h, w: tt.exp(h)[:, 1], 2, Subtensor),
    "slice as long as something": (lambda h, w: tt.exp(h)[-w.shape[0] :], 1, Subtensor),
    "shape": (lambda h, w: tt.exp(h).reshape((2, 2)).T.reshape((N,)), 1, tt.Reshape),
    "shape of something": (lambda h, w: tt.exp(h).reshape(w.shape), 2, tt.Reshape),
    "elements": (lambda h, w: tt.exp(h)[INDICES], 1, AdvancedSubtensor1),
    "rows": (lambda h, w: tt.exp(h)[INDICES], 2, AdvancedSubtensor1),
    "rows by a state": (lambda h, w: w[tt.cast(h * 0, "int64") + 1], 1, AdvancedSubtensor1),
    "length": (lambda h, w: h / tt.exp(h).shape[0], 1, Elemwise),
    "lengths": (lambda h, w: h / tt.exp(h).shape.prod(), 2, Elemwise),
    "fill": (lambda h, w: tt.fill(tt.exp(h), h.sum()), 1, Sum),
    "fill by rows": (lambda h, w: tt.fill(tt.exp(h), h.sum(axis=1, keepdims=True)), 2, Sum),
    "fill of a row": (lambda h, w: tt.fill(h.sum(axis=0, keepdims=True), tt.dot(h, w)), 2, tt.Dot),
    "fill of all": (lambda h, w: tt.fill(tt.exp(h), tt.dot(h, w)), 2, tt.Dot),
}


def compile_gradient(name, excluded=(), dtype="float64", **options):
    """Compile the gradient of a recurrence, as a function of a state, weights and n_steps.

    Args:
        name: a key of COMPUTED.
        excluded: the optimizers to leave out.
        dtype: the dtype of the state and the weights.
        options: arguments of theano.scan.
    """
    computed, dimensions, _ = COMPUTED[name]
    h, w = tt.TensorType(dtype, (False,) * dimensions)(), tt.matrix(dtype=dtype)
    steps = tt.lscalar()

    def step(h, w):
        new = tt.sin(computed(h, w)).astype(dtype)
        return h + (new if new.ndim <= dimensions else new.sum(axis=1))

    states, _ = theano.scan(
        step, outputs_info=[h], non_sequences=[w], n_steps=steps, strict=True, **options
    )
    slopes = tt.grad(tt.sqr(states).sum(), [h, w], disconnected_inputs="ignore")
    mode = exclude_optimizers(excluded)
    return theano.function([h, w, steps], slopes, mode=mode, on_unused_input="ignore")


def exclude_optimizers(excluded):
    return theano.compile.get_mode("FAST_RUN").excluding(*excluded)


def find_gradient(function):
    """Return the node of the Scan that computes the gradient of a recurrence."""
    (node,) = filter(is_gradient_of_recurrence, function.maker.fgraph.toposort())
    return node


def list_nodes_of_steps(function):
    """Return the nodes of the gradient's steps."""
    op = find_gradient(function).op
    return io_toposort(op.inputs, op.outputs)


@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize(
    ("options", "tolerance"),
    [({}, 1e-11), ({"truncate_gradient": 3}, 1e-11), ({"dtype": "float32"}, 1e-4)],
    ids=["whole", "truncated", "float32"],
)
def test_gradients_equal_gradients_without_the_optimizer(name, options, tolerance):
    functions = [
        compile_gradient(name, excluded, **options)
        for excluded in ([], ["scanOp_pushout_gradients"])
    ]
    random = np.random.RandomState(0)
    dtype = options.get("dtype", "float64")
    state = random.normal(size=(N,) * COMPUTED[name][1]).astype(dtype)
    weights = random.normal(0, 0.5, (N, N)).astype(dtype)
    for steps in (1, 2, 5):
        actual, expected = (function(state, weights, steps) for function in functions)
        for one, other in zip(actual, expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", COMPUTED)
def test_each_kind_of_op_is_moved_out(name):
    kind = COMPUTED[name][2]
    before, after = (
        sum(
            isinstance(node.op, kind)
            for node in list_nodes_of_steps(compile_gradient(name, excluded))
        )
        for excluded in (["scanOp_pushout_gradients"], [])
    )
    assert after < before


@pytest.mark.parametrize(
    "computed",
    [
        lambda h: tt.tanh(tt.outer(h, tt.exp(h))).sum(axis=1),
        lambda h: tt.tanh(tt.exp(h) + tt.ones((100, N))).sum(axis=0),
        lambda h: tt.tanh(tt.exp(h).dimshuffle(0, "x") * tt.exp(h)).sum(axis=1),
        lambda h: tt.tanh(tt.dot(tt.outer(h, h), tt.outer(h, h))).sum(axis=1),
    ],
)
def test_results_larger_than_the_operands_are_not_moved(computed):
    h = tt.dvector()
    states, _ = theano.scan(lambda h: h + computed(h), outputs_info=[h], n_steps=5)
    function = theano.function([h], tt.grad(states.sum(), h))
    scan = find_gradient(function)
    patterns = [x.broadcastable[1:] for x in scan.op.outer_seqs(scan.inputs)]
    assert {pattern.count(False) for pattern in patterns} == {1}


def test_a_lookup_by_a_sequence_of_indices_is_moved():
    table, indices = tt.dmatrix(), tt.lmatrix()
    states, _ = theano.scan(
        lambda chosen, state, table: tt.tanh(state * tt.exp(table)[chosen]),
        sequences=indices,
        outputs_info=[tt.ones((2, N))],
        non_sequences=[table],
        strict=True,
    )
    functions = [
        theano.function(
            [table, indices], tt.grad(states.sum(), table), mode=exclude_optimizers(excluded)
        )
        for excluded in ([], ["scanOp_pushout_gradients"])
    ]
    op_types = [{type(node.op) for node in list_nodes_of_steps(function)} for function in functions]
    assert [AdvancedSubtensor1 in ops for ops in op_types] == [False, True]
    values = np.random.RandomState(0).normal(size=(5, N)), [[0, 4], [2, 2], [4, 1]]
    np.testing.assert_allclose(*(function(*values) for function in functions), rtol=1e-12)


def test_an_elemwise_of_several_outputs_is_not_moved(monkeypatch):
    monkeypatch.setattr(theano.config, "on_opt_error", "raise")
    a, b = scalar.float64("a"), scalar.float64("b")
    both = tt.Elemwise(scalar.Composite([a, b], [a * b, a + b]))
    h = tt.dvector()
    states, _ = theano.scan(
        lambda h: tt.sin(h) * theano.gradient.disconnected_grad(both(tt.cos(h), h)[1]),
        outputs_info=[h],
        n_steps=2,
    )
    function = theano.function([h], tt.grad(states.sum(), h))
    assert both.scalar_op in [
        node.op.scalar_op for node in list_nodes_of_steps(function) if isinstance(node.op, Elemwise)
    ]


def test_cheap_arithmetic_is_not_moved():
    h = tt.dvector()
    states, _ = theano.scan(
        lambda h: tt.tanh(tt.exp(h) * 2 - 1) * tt.exp(h), outputs_info=[h], n_steps=5
    )
    function = theano.function([h], tt.grad(states.sum(), h), mode=exclude_optimizers(["fusion"]))
    nodes = list_nodes_of_steps(function)
    inside = {str(node.op.scalar_op) for node in nodes if isinstance(node.op, Elemwise)}
    assert "sqr" in inside
    assert not inside & {"tanh", "exp"}


@pytest.mark.parametrize("length", range(4))
@pytest.mark.parametrize("first", range(3))
@pytest.mark.parametrize("last", range(3))
def test_a_buffer_is_reversed_by_one_slice(length, first, last):
    buffer = np.arange(length)
    expected = buffer[first : max(length - last, 0)][::-1]
    assert reverse_buffer(buffer, first, last).tolist() == expected.tolist()
