"""port/scan-steps-in-c, cuda/scan-on-devices: a scan stores slices of arrays on a device."""

SCAN = """
import compile as stubs
stubs.start()
import numpy as np
import theano
import theano.tensor as T
x = T.fmatrix()
y, _ = theano.scan(lambda row, state: T.tanh(row + state), sequences=x, outputs_info=x[0])
# Scan stores the last states in a circular buffer, which has an odd length here. After the last
# step, Scan rotates the buffer.
last_three = theano.function([x], y[-3:])
assert any(getattr(node.op, "gpua", False) for node in last_three.maker.fgraph.toposort())
print(last_three(np.ones((7, 3), "float32")).shape)
"""


def test_a_scan_on_a_device_stores_its_last_states(run):
    done = run("-c", SCAN, flags="floatX=float32")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("(3, 3)\n")
