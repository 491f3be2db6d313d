"""A scan over arrays of a device ends: port/scan-steps-in-c, cuda/scan-on-devices."""

SCAN = """
import compile as stubs
stubs.start()
import numpy as np
import theano
import theano.tensor as T
x = T.fmatrix()
y, _ = theano.scan(lambda row, state: T.tanh(row + state), sequences=x, outputs_info=x[0])
# The buffer has an odd length and is rotated at the end.
last_three = theano.function([x], y[-3:])
assert any(getattr(node.op, "gpua", False) for node in last_three.maker.fgraph.toposort())
print(last_three(np.ones((7, 3), "float32")).shape)
"""


def test_slices_are_stored(run):
    done = run("-c", SCAN, flags="floatX=float32")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("(3, 3)\n")
