"""cuda/gpuarray-kernels.patch: functions copy few values to the host, which checks the indices.

Without the patch, each call, or each step of a scan, copies shapes and error flags to the host.
"""

import pytest

# `show` prints the number of copies to the host in a function's graph and in the graph of each of
# its scans, then the results.
COMMON = """
import numpy as np
import theano
import theano.tensor as T
from theano.gpuarray.basic_ops import HostFromGpu
random = np.random.RandomState(1)
def draw(*shape):
    return random.standard_normal(shape)
def count_copies(function):
    graphs = [function.maker.fgraph]
    graphs += [n.op.fn.maker.fgraph for n in graphs[0].apply_nodes if hasattr(n.op, "fn")]
    return [sum(isinstance(n.op, HostFromGpu) for n in g.apply_nodes) for g in graphs]
def show(function, *values):
    print(count_copies(function))
    for out in function(*values):
        print(np.array2string(np.asarray(out), precision=10, floatmode="fixed"))
x, w, v, rows = T.dmatrix(), theano.shared(draw(4, 4)), T.dvector(), T.lvector()
"""
CASES = {
    # The result depends on the shape of a product that the device computes.
    "shapes": """
y = T.dot(x, w)
show(theano.function([x], [y.mean(), T.zeros((y.shape[0] + 1, 2)) + 1]), draw(3, 4))
""",
    # BLAS reads a scalar factor on the host, but the device computes these factors.
    "factors": """
factor, y = v.sum(), T.exp(v)
out = [factor * T.dot(x, y), factor * T.dot(x, y) - 3 * v, factor * T.dot(x, w) + x,
       x + factor * T.outer(v, y), T.dot(x, y) + factor * v, 2 * T.dot(x, w) - factor * x]
show(theano.function([x, v], out), draw(4, 4), draw(4))
""",
    # The rows to take are an input of the function, or a constant.
    "rows": """
y = T.tanh(x)
out = [y[rows], T.tanh(v)[[1, -1, 0]], T.inc_subtensor(T.exp(x)[rows], 1.0)]
show(theano.function([x, v, rows], out), draw(3, 4), draw(5), [2, -3, 0, 0])
""",
    # The gradient of a step splits arrays. The sizes of the parts depend on shapes.
    "scan": """
h, _ = theano.scan(lambda row, h: T.tanh(T.dot(T.concatenate([row, h], 1), T.join(0, w, w))),
                   x.reshape((2, 3, 4)), T.zeros((3, 4)))
show(theano.function([x], [h[-1], T.grad(h[-1].sum(), w)]), draw(6, 4))
""",
}
# The number of copies to the host in each function. The scan's gradient is not copied, because the
# shared variable w is on the device.
COPIES = {"shapes": 1, "factors": 6, "rows": 3, "scan": 1}
# Take and increment rows at positions out of range; print the errors.
BEYOND = """
for value in ([0, 3], [-4]):
    for out in (T.tanh(x)[rows], T.inc_subtensor(T.exp(x)[rows], rows.dimshuffle(0, "x") + x[0])):
        try:
            theano.function([x, rows], out)(draw(3, 4), value)
        except IndexError as error:
            print(str(error).splitlines()[0])
"""
CPU = "device=cpu,force_device=False"


def compute(emulate, program, flags=""):
    """Run COMMON and a program on the emulated device; return the lines of the output."""
    done = emulate("-c", COMMON + program, flags=flags)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("case", CASES)
def test_only_results_are_copied(emulate, case):
    """COPIES has a function's number of copies; its scans copy nothing. Results equal the CPU's."""
    copies, *on_device = compute(emulate, CASES[case])
    assert copies == str([COPIES[case], *([0] * copies.count(","))])
    _, *on_cpu = compute(emulate, CASES[case], flags=CPU)
    assert on_device == on_cpu


def test_an_index_out_of_range_is_an_error(emulate):
    assert compute(emulate, BEYOND) == ["Index out of bounds."] * 4
