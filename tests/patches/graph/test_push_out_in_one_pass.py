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
