"""A scan's gradient sums one product per weight, which can be computed once, after the scan.

Without the patch, the scan is built anew for each of them: minutes for networks with many weights.
"""

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


def test_one_new_scan(run_python):
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
# The state and nothing else goes from step to step: the sums have left.
assert max(scan.n_sit_sot + scan.n_mit_mot for scan in scans) < WEIGHTS
""",
        # The optimizer is what matters: no C code is compiled.
        flags="cxx=",
    )
    assert result.returncode == 0, result.stderr


def test_same_gradients_as_without(run_python):
    result = run_python(
        NETWORK
        + """
kept = theano.compile.get_default_mode().excluding("scanOp_pushout_output")
values = np.random.RandomState(9).normal(size=(4, 3, 5))
for found, expected in zip(
        theano.function([x], gradients)(values),
        theano.function([x], gradients, mode=kept)(values)):
    np.testing.assert_allclose(found, expected, rtol=1e-12)
""",
        flags="cxx=",
    )
    assert result.returncode == 0, result.stderr


def test_sums_of_several_sizes(run_python):
    """Of weights of different shapes, one of them used twice, and of which states need others."""
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
kept = theano.compile.get_default_mode().excluding("scanOp_pushout_output")
functions = [theano.function([x, initial], gradients, mode=mode) for mode in (None, kept)]
counts = []
for function in functions:
    scans = [n.op for n in function.maker.fgraph.toposort() if type(n.op).__name__ == "Scan"]
    counts.append(max(scan.n_sit_sot + scan.n_mit_mot for scan in scans))
assert counts[0] < counts[1]
for length in (1, 4):
    random = np.random.RandomState(length)
    values = random.normal(size=(length, 2, 5)), random.normal(size=(2, 3))
    for found, expected in zip(*(function(*values) for function in functions)):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
""",
        flags="cxx=",
    )
    assert result.returncode == 0, result.stderr
