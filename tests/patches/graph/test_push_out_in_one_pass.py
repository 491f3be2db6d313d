"""graph/push-out-in-one-pass.patch moves all products of a scan's gradient out of it in one pass.

Without the patch, the scan is rebuilt for each weight. This takes minutes for a network with many
weights.
"""

import pytest

NETWORK = """
import numpy as np, theano, theano.tensor as tt
from theano.scan_module import scan_op, scan_opt

WEIGHTS = 3
x = tt.tensor3("x")
weights = [theano.shared(np.random.RandomState(i).normal(0, 0.3, (5, 5))) for i in range(WEIGHTS)]

def step(row, state, *weights):
    return tt.tanh(row + sum(tt.tanh(tt.dot(state, w)) for w in weights))

states, _ = theano.scan(
    step, sequences=x, outputs_info=tt.zeros_like(x[0]), non_sequences=weights)
gradients = tt.grad(tt.sqr(states[-1]).sum(), weights)
"""


def test_all_products_make_one_new_scan(run_python):
    result = run_python(
        NETWORK
        + """
passes = []
process_node = scan_opt.PushOutScanOutput.process_node

def counted(self, fgraph, node):
    passes.append(process_node(self, fgraph, node))
    return passes[-1]

scan_opt.PushOutScanOutput.process_node = counted
function = theano.function([x], gradients)
assert sum(node is not None for node in passes) == 1
scans = [node.op for node in function.maker.fgraph.toposort() if isinstance(node.op, scan_op.Scan)]
assert len(scans) == 2
# Only the state passes from step to step: the scan no longer computes the sums.
assert max(scan.n_sit_sot + scan.n_mit_mot for scan in scans) < WEIGHTS
""",
        # Only the optimizer is tested: compile no C code.
        flags="cxx=",
    )
    assert result.returncode == 0, result.stderr


def test_gradients_equal_gradients_without_the_optimizer(run_python):
    result = run_python(
        NETWORK
        + """
without = theano.compile.get_default_mode().excluding("scanOp_pushout_output")
values = np.random.RandomState(9).normal(size=(4, 3, 5))
for actual, expected in zip(
        theano.function([x], gradients)(values),
        theano.function([x], gradients, mode=without)(values)):
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
""",
        flags="cxx=",
    )
    assert result.returncode == 0, result.stderr


def test_gradients_of_weights_of_several_shapes_are_correct(run_python):
    """Gradients are correct for weights of different shapes, and for a weight of two products.

    Some weights multiply the previous state. Fewer sums stay in the scan.
    """
    result = run_python(
        """
import numpy as np, theano, theano.tensor as tt
x, initial = tt.tensor3("x"), tt.matrix("initial")
shapes = (5, 3), (3, 5), (5, 5), (3, 3)
weights = [theano.shared(np.random.RandomState(i).normal(0, 0.3, s)) for i, s in enumerate(shapes)]

def step(row, large, small, a, b, c, d):
    hidden = tt.tanh(tt.dot(large, a) + tt.dot(small, d))
    return tt.tanh(row + tt.dot(hidden, b) + tt.dot(tt.sqr(large), c)), tt.dot(hidden, d)

(large, small), _ = theano.scan(step, x, [tt.zeros_like(x[0]), initial], non_sequences=weights)
cost = tt.sqr(large[-1]).sum() + small.sum()
gradients = tt.grad(cost, [*weights, x, initial])
without = theano.compile.get_default_mode().excluding("scanOp_pushout_output")
functions = [theano.function([x, initial], gradients, mode=mode) for mode in (None, without)]
counts = []
for function in functions:
    scans = [n.op for n in function.maker.fgraph.toposort() if type(n.op).__name__ == "Scan"]
    counts.append(max(scan.n_sit_sot + scan.n_mit_mot for scan in scans))
assert counts[0] < counts[1]
for length in (1, 4):
    random = np.random.RandomState(length)
    values = random.normal(size=(length, 2, 5)), random.normal(size=(2, 3))
    for actual, expected in zip(*(function(*values) for function in functions)):
        np.testing.assert_allclose(actual, expected, rtol=1e-10)
""",
        flags="cxx=",
    )
    assert result.returncode == 0, result.stderr


GATES = {
    "sigmoid": "tt.dot(h, v) * tt.nnet.sigmoid(tt.dot(h, u) + row)[:, :d]",
    "tanh": "tt.dot(h, v) * tt.tanh(tt.dot(h, u) + row)[:, :d]",
    "linear": "tt.dot(h, v) * (tt.dot(h, u) + row)[:, :d]",
    "last columns": "tt.dot(h, v) * tt.tanh(tt.dot(h, u) + row)[:, d:]",
}


@pytest.mark.parametrize("gates", GATES)
def test_gradients_of_gates_of_one_product_are_correct(run_python, gates):
    """Gradients are correct for gates that are slices of one product.

    A gradient sums a product of two factors over the steps. One factor is already an output of the
    scan; the optimizer makes the other factor an output too.
    """
    result = run_python(
        f"""
import numpy as np, theano, theano.tensor as tt
d = 4
u, v = (
    theano.shared(np.random.RandomState(n).normal(0, 0.3, (d, d * n))) for n in (2, 1))
x, initial = tt.tensor3("x"), tt.matrix("initial")
states, _ = theano.scan(
    lambda row, h, u, v: {GATES[gates]}, sequences=x, outputs_info=initial, non_sequences=[u, v])
gradients = tt.grad(states[-1].sum(), [u, v])
values = np.random.RandomState(9).normal(size=(5, 3, 2 * d)), np.ones((3, d))
for actual, expected in zip(
        theano.function([x, initial], gradients)(*values),
        theano.function([x, initial], gradients, mode=theano.Mode("py", None))(*values)):
    np.testing.assert_allclose(actual, expected, rtol=1e-9)
""",
        flags="cxx=,on_opt_error=raise",
    )
    assert result.returncode == 0, result.stderr
