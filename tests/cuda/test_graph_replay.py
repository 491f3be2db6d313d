"""Functions compute the same results with and without CUDA graphs.

The emulated device records graphs and launches them (emulator.cpp).
"""

import json

import pytest

# `show` prints results. `count` prints, for each function, how many graphs it launched, and how
# often its device segments ran without a graph after the first two calls.
COMMON = """
import numpy as np
import theano
import theano.tensor as T
from theano.gpuarray import graph_replay
from theano.gpuarray.basic_ops import as_gpuarray_variable
graph_replay.MIN_NODES = 1
random = np.random.RandomState(1)
def draw(*shape):
    return random.standard_normal(shape)
def show(results):
    for result in results if isinstance(results, list) else [results]:
        print(np.array2string(np.asarray(result), precision=15, floatmode="fixed"))
def count(*functions):
    print([(f.fn.n_launched, f.fn.n_usual) for f in functions if hasattr(f.fn, "n_usual")])
x, v, n, rows = T.dmatrix(), T.dvector(), T.lscalar(), T.lvector()
w, b = theano.shared(draw(4, 4)), theano.shared(draw(4))
"""
# Maps the name of a case to a program and to the numbers that `count` prints, or to None if the
# numbers depend on addresses. In the first two calls, all nodes run without graphs. For each key, a
# device segment runs without a graph once more, and its next run is captured. `count` counts both.
CASES = {
    # Batches of two sizes have two graphs. set_value changes the address of `w`, so each size needs
    # another graph.
    "training": (
        """
loss = T.sqr(T.tanh(T.dot(T.tanh(T.dot(x, w) + b), w))).mean()
gw, gb = T.grad(loss, [w, b])
mean = theano.shared(np.zeros((4, 4)))
new = 0.9 * mean + gw
f = theano.function([x], [loss, gw.sum(0)], updates=[(mean, new), (w, w - new), (b, b - 0.1 * gb)])
for i in range(20):
    if i == 14:
        w.set_value(w.get_value(return_internal_type=True), borrow=True)
    show(f(draw(3 + i % 2, 4)))
count(f)
show([w.get_value(), b.get_value(), mean.get_value()])
""",
        [(10, 8)],
    ),
    # Updates exchange two shared variables. The outputs of g depend on the old value of `a`.
    "exchange": (
        """
a, c = theano.shared(draw(4)), theano.shared(draw(4))
f = theano.function([], [a + 1, T.exp(w).sum(0)], updates=[(a, c), (c, a), (w, w * 0.5 + 1)])
g = theano.function([], [a, a * 2], updates=[(a, a * 3 + b), (b, c)])
for i in range(12):
    show(f() + g() + [a.get_value(), b.get_value(), c.get_value(), w.get_value()])
count(f, g)
""",
        None,
    ),
    # A program keeps results on the device. Later calls do not overwrite them.
    "kept results": (
        """
y = T.tanh(T.dot(x, w))
outputs = [theano.Out(as_gpuarray_variable(out, None), borrow=True) for out in (y, y.T, y[1:] + b)]
f = theano.function([x], outputs)
results = [result for i in range(8) for result in f(draw(3, 4))]
new_arrays = [theano.shared(np.full((3, 4), float(i))) for i in range(50)]
results += [result for i in range(3) for result in f(draw(3, 4))]
show(results + [array.get_value() for array in new_arrays])
count(f)
""",
        [(7, 2)],
    ),
    # The number of steps is a part of the key.
    "scan": (
        """
h, _ = theano.scan(lambda h, w: T.tanh(T.dot(h, w) + b), None, x, w, n)
loss = T.sqr(h).sum()
f = theano.function([x, n], [loss, h[-1]], updates=[(w, w - 0.01 * T.grad(loss, w))])
for i in range(16):
    show(f(draw(3, 4), 3 + i // 8))
count(f)
""",
        [(10, 4)],
    ),
    # The states of random numbers change in each call.
    "random numbers": (
        """
from theano.sandbox.rng_mrg import MRG_RandomStreams
streams = MRG_RandomStreams(3)
mask = streams.binomial((4,), p=0.5, dtype="float64")
f = theano.function([x], [T.dot(x, w) * mask, streams.uniform((2, 3), dtype="float64")])
for i in range(8):
    show(f(draw(3, 4)))
count(f)
""",
        [(4, 2)],
    ),
    # The host checks the indices in each call. The key contains only their number.
    "indices": (
        """
loss = T.sqr(T.tanh(w)[rows]).sum()
f = theano.function([rows], loss, updates=[(w, w - 0.1 * T.grad(loss, w))])
for indices in ([0, 1], [2, 3], [0, 0], [-1, 2], [3, 1], [0, 4], [1, 1], [-5, 0], [-4, 3]):
    try:
        show(f(indices))
    except IndexError as error:
        print(str(error).splitlines()[0])
count(f)
""",
        [(3, 2)],
    ),
    # Nodes on the host run in each call, between two graphs.
    "host": (
        """
@theano.compile.ops.as_op([T.dmatrix], [T.dmatrix])
def flip(array):
    return array[::-1] + 1
f = theano.function([x], T.tanh(T.dot(flip(T.exp(T.dot(x, w))), w)).sum(0))
for i in range(9):
    show(f(draw(3, 4)))
count(f)
""",
        [(10, 4)],
    ),
    # A function selects slices of a data set on the device, and counts its steps. It copies `y` to
    # the host before the gradient overwrites `y`, so it has two device segments.
    "data set": (
        """
i = T.lscalar()
data, steps = theano.shared(draw(20, 4)), theano.shared(np.int64(0))
y = T.tanh(T.dot(x[::-1], w))
loss = T.sqr(y).mean() / (steps + 1)
f = theano.function([i], [loss, y.T], updates=[(w, w - T.grad(loss, w)), (steps, steps + 1)],
                    givens={x: data[i * 4 : (i + 1) * 4]})
for k in range(12):
    show(f(k % 5))
show([steps.get_value(), data.get_value(), w.get_value()])
count(f)
""",
        [(15, 5)],
    ),
    # The graphs of two functions use the same memory pool and the same shared variables.
    "two functions": (
        """
f = theano.function([x], T.tanh(T.dot(x, w)).sum(0), updates=[(b, b + x.sum())])
g = theano.function([x], [T.exp(T.dot(x, w)) + b, b * 2], updates=[(w, w * 0.9)])
for i in range(9):
    show(f(draw(3, 4)))
    show(g(draw(5, 4)))
count(f, g)
""",
        [(5, 2), (5, 2)],
    ),
    # Functions are deleted, and their graphs' memory is not used for other arrays.
    "deleted functions": (
        """
f = theano.function([x], T.tanh(T.dot(T.exp(x), w)).sum(0), updates=[(b, b + x.sum())])
new_arrays = []
for i in range(5):
    g = theano.function([x], [T.tanh(T.dot(T.exp(x), w) * (i + 1)).sum(0), T.dot(x, w + i)])
    for k in range(6):
        show(f(draw(3, 4)))
        show(g(draw(3, 4)))
    del g
    new_arrays += [theano.shared(draw(3, 4)) for k in range(9)]
    show(f(draw(3, 4)))
show([array.get_value() for array in new_arrays] + [b.get_value()])
count(f)
""",
        [(31, 2)],
    ),
    # A node that reads an error flag cannot be captured. Other functions use graphs.
    "not captured": (
        """
from theano.gpuarray.take_rows import GpuTakeRows
graph_replay.DEVICE_OPS += (GpuTakeRows,)
f = theano.function([x], T.tanh(T.dot(x, w))[T.argsort(T.dot(x, b))], updates=[(b, b * 0.5)])
g = theano.function([x], T.tanh(T.dot(x, w)) + b)
for i in range(9):
    show(f(draw(3, 4)))
    show(g(draw(3, 4)))
count(f, g)
""",
        None,
    ),
    # A function with conditions runs without graphs.
    "condition": (
        """
f = theano.function([x, n], theano.ifelse.ifelse(T.gt(n, 3), T.dot(x, w), T.exp(x)).sum(0))
for i in range(8):
    show(f(draw(3, 4), i))
count(f)
""",
        [],
    ),
}
# A launch does nothing, so the comparison after a capture fails.
WRONG = """
from theano.gpuarray import cuda_graphs
cuda_graphs.CudaGraph.launch = lambda self: None
f = theano.function([x], T.tanh(T.dot(x, w)).sum(0), updates=[(b, b * 0.5)])
for i in range(8):
    show(f(draw(3, 4)))
show(b.get_value())
"""
# Work that waits for the device, and empty work, cannot be captured. A later capture succeeds.
CAPTURES = """
device = graph_replay.find_device(None)
array = w.get_value(borrow=True, return_internal_type=True)
for work in (lambda: array[1:].copy().sync() or np.asarray(array), lambda: None):
    try:
        device.capture(work)
    except Exception as error:
        print(type(error).__name__)
graph = device.capture(lambda: array.__setitem__(slice(0, 1), array[1:2]))
print(np.asarray(array).tolist())
graph.launch()
print(np.asarray(array).tolist())
"""

# The driver refuses to capture g, after the nodes of g have run. Then the results of g are not in
# the memory of the graphs of f. In the end, no graph keeps an array.
REFUSED = """
import gc
y = T.tanh(T.dot(x, w))
f = theano.function([x], T.dot(T.tanh(T.dot(y, w) + b), w).sum(0), updates=[(b, b * 0.9)])
output = theano.Out(as_gpuarray_variable(T.dot(y, w), None), borrow=True)
g = theano.function([x], output, updates=[(w, w * 0.9)])
for i in range(6):
    show(f(draw(3, 4)))
def refuse(device, graph):
    raise graph_replay.CaptureError("refused")
check, graph_replay.Device._check_nodes = graph_replay.Device._check_nodes, refuse
kept = [g(draw(3, 4)) for i in range(6)]
graph_replay.Device._check_nodes = check
for i in range(3):
    show(f(draw(3, 4)))
show(kept)
count(f, g)
del f, g, kept
gc.collect()
print([len(device._in_use) for device in graph_replay._devices.values()])
"""


def run(emulate, program, flags=""):
    """Run COMMON and a program on the emulated device; return the lines of stdout, and stderr."""
    done = emulate("-c", COMMON + program, flags=flags)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize("case", CASES)
def test_results_do_not_depend_on_graphs(emulate, case):
    program, counts = CASES[case]
    with_graphs, messages = run(emulate, program)
    as_usual, _ = run(emulate, program, "gpuarray.graph_memory=0")
    (printed,) = [line for line in with_graphs if line.startswith("[(") or line == "[]"]
    assert "CUDA graph" not in messages
    assert [line for line in with_graphs if line != printed] == [
        line for line in as_usual if line != "[]"
    ]
    assert counts is None or printed == str(counts)


def test_a_wrong_graph_is_not_used(emulate):
    with_graphs, messages = run(emulate, WRONG)
    as_usual, _ = run(emulate, WRONG, "gpuarray.graph_memory=0")
    assert with_graphs == as_usual
    assert messages.count("did not compute the results") == 1


def test_work_of_the_host_is_not_captured(emulate):
    lines, _ = run(emulate, CAPTURES)
    assert lines[1] == "CaptureError"
    (_, *rows), after = map(json.loads, lines[2:])
    assert after == [rows[0], *rows]


def test_a_refused_capture_leaves_no_results_in_the_memory_of_graphs(emulate):
    lines, messages = run(emulate, REFUSED)
    as_usual, _ = run(emulate, REFUSED, "gpuarray.graph_memory=0")
    assert "CUDA graph" not in messages
    assert lines[:-2] == as_usual[:-2]
    assert lines[-2:] == ["[(3, 4), (0, 2)]", "[0]"]
