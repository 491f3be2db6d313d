"""Compare results of the emulated device with results of the CPU.

One function contains products, elementwise loops, reductions, a scan, indices and gradients.
"""

import json

import numpy as np

PROGRAM = """
import json
import numpy as np
import theano
import theano.tensor as T
random = np.random.RandomState(1)
x, rows = T.dmatrix(), T.lvector()
weights = theano.shared(random.standard_normal((5, 7)))
y = T.tanh(T.dot(x, weights))
states, _ = theano.scan(lambda row, state: T.tanh(row + state), y, T.zeros_like(y[0]))
cost = states.sum() + T.sqr(y[rows]).sum()
outputs = [y, y.sum(axis=0), y.max(axis=1), T.nnet.softmax(y), states, *T.grad(cost, [x, weights])]
function = theano.function([x, rows], [output.flatten() for output in outputs])
print(json.dumps([out.tolist() for out in function(random.standard_normal((3, 5)), [2, -1, 0])]))
"""


def test_results_equal_the_cpus_results(emulate):
    results = []
    for flags in ("", "device=cpu,force_device=False"):
        done = emulate("-c", PROGRAM, flags=flags)
        assert done.returncode == 0, done.stderr
        results.append(json.loads(done.stdout.splitlines()[-1]))
    for on_device, on_cpu in zip(*results, strict=True):
        np.testing.assert_allclose(on_device, on_cpu, rtol=1e-12, atol=1e-12)
