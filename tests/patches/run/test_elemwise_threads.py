"""build/loops-alone.patch: several threads compute the loops of a large Elemwise or CAReduce."""

import functools
import itertools
import os

import numpy as np
import pytest
import theano
from theano import tensor
from theano.tensor.linkers import count_threads
from theano.tensor.linkers.threads import HAS_KERNELS

CPUS = len(os.sched_getaffinity(0))
# An Elemwise that is large enough for helper threads to start on any processor.
LARGE = """
import os
import numpy as np
import theano
from theano import tensor

x = tensor.matrix()
f = theano.function([x], tensor.tanh(x) ** x, mode=theano.Mode("cvm", "fast_run"))
values = np.linspace(0, 1, 4_000_000, dtype=x.dtype).reshape(2000, 2000)


def count_new_threads():
    before = len(os.listdir("/proc/self/task"))
    f(values)
    return len(os.listdir("/proc/self/task")) - before
"""


def make_arrays(shape, dtype):
    """Yield an array of a shape with each memory layout."""
    rng = np.random.RandomState(3)
    values = rng.uniform(0.5, 2, [2 * n for n in shape]).astype(dtype)
    every_second = values[tuple(slice(None, None, 2) for _ in shape)]
    plain = np.ascontiguousarray(every_second)
    yield plain
    yield np.asfortranarray(plain)
    yield every_second
    yield plain[::-1]
    # Strided rows.
    yield values[tuple(slice(n) for n in shape)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize(
    "shape",
    [(100_003,), (1, 40_000), (87, 128), (3, 9000), (9000, 3), (2, 3, 5, 7, 50), (60, 40, 30)],
    ids=str,
)
def test_results_do_not_depend_on_the_number_of_threads(shape, dtype, require_equal_results):
    x, y = (tensor.TensorType(dtype, [False] * len(shape))() for _ in range(2))
    row = tensor.TensorType(dtype, [True] * (len(shape) - 1) + [False])()
    total = theano.shared(np.zeros(shape, dtype))
    f = theano.function(
        [x, y, row],
        [tensor.exp(x) * y + row, tensor.log1p(abs(x) + 1)],
        updates=[(total, total + x * row)],
    )

    def call(first, second):
        total.set_value(np.ones(shape, dtype))
        results = f(first, second, first[(slice(1),) * (len(shape) - 1)])
        return [*results, total.get_value()]

    for arrays in itertools.product(make_arrays(shape, dtype), repeat=2):
        require_equal_results(functools.partial(call, *arrays))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize("shape", [(40, 50, 60), (3000, 30), (30, 3000), (50_000, 2)], ids=str)
def test_reductions_do_not_depend_on_the_number_of_threads(shape, dtype, require_equal_results):
    x = tensor.TensorType(dtype, [False] * len(shape))()
    axes = [*range(len(shape)), None, (0, 1), (-2, -1)]
    f = theano.function(
        [x], [reduction(x, axis) for axis in axes for reduction in (tensor.sum, tensor.max)]
    )
    for values in make_arrays(shape, dtype):
        require_equal_results(functools.partial(f, values))


def test_a_scan_does_not_depend_on_the_number_of_threads(require_equal_results):
    x = tensor.tensor3()
    states, _ = theano.scan(lambda x, h: tensor.tanh(x + h) * x, x, tensor.zeros_like(x[0]))
    f = theano.function([x], [states, theano.grad(states[-1].sum(), x)])
    values = np.random.RandomState(5).uniform(-1, 1, (6, 200, 150)).astype(x.dtype)
    require_equal_results(functools.partial(f, values), numbers=(1, 3))


@pytest.mark.skipif(not HAS_KERNELS, reason="the processor has no AVX2")
def test_short_products_in_many_steps_wake_a_helper(run_python):
    """A part of each product takes a few microseconds, less than the time to wake a helper."""
    code = """
import os
import numpy as np
import theano
from theano import tensor

state, weights = tensor.dvector(), theano.shared(np.eye(300))
steps = theano.scan(lambda state: tensor.dot(state, weights), [], state, n_steps=1000)[0]
f = theano.function([state], steps[-1])
before = len(os.listdir("/proc/self/task"))
f(np.ones(300))
print(len(os.listdir("/proc/self/task")) - before)
"""
    completed = run_python(code, flags="elemwise.threads=2")
    assert completed.stdout == "1\n", completed.stderr


@pytest.mark.parametrize(
    ("flags", "environ", "new_threads"),
    [
        ("", {"OMP_NUM_THREADS": "1"}, 0),
        ("", {"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "3"}, 2),
        ("elemwise.threads=4", {"OMP_NUM_THREADS": "1"}, 3),
        ("elemwise.threads=1", {}, 0),
    ],
)
def test_flags_and_variables_set_the_number_of_threads(run_python, flags, environ, new_threads):
    """A call starts a helper for each thread except the calling thread."""
    completed = run_python(LARGE + "print(count_new_threads())", flags=flags, **environ)
    assert (completed.returncode, completed.stdout) == (0, f"{new_threads}\n"), completed.stderr


def test_the_default_is_all_cpus_of_the_process(run_python):
    # The environment's site-packages set OMP_NUM_THREADS when the interpreter starts.
    code = "print(count_new_threads() + 1, os.environ['OMP_NUM_THREADS'])"
    completed = run_python(LARGE + code)
    assert completed.returncode == 0, completed.stderr
    threads, default = completed.stdout.split()
    # With many CPUs, one call does not need all helpers.
    assert min(int(threads), 4) == min(int(default), 4)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, CPUS),
        ({"OMP_NUM_THREADS": "", "MKL_NUM_THREADS": "0", "OPENBLAS_NUM_THREADS": "many"}, CPUS),
        ({"OMP_NUM_THREADS": "6,2"}, 6),
        ({"OMP_NUM_THREADS": "6", "OPENBLAS_NUM_THREADS": "1"}, 1),
    ],
)
def test_count_threads_returns_the_smallest_valid_limit(environ, expected):
    assert count_threads(environ) == expected


def test_a_forked_process_starts_its_own_helpers(run_python):
    code = """
expected = f(values)
if not (child := os.fork()):
    started = count_new_threads()
    os._exit(0 if started == 1 and np.array_equal(f(values), expected) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), np.array_equal(f(values), expected))
"""
    completed = run_python(LARGE + code, flags="elemwise.threads=2")
    assert (completed.returncode, completed.stdout) == (0, "0 True\n"), completed.stderr


def test_helpers_handle_no_signals(run_python):
    code = """
import signal, threading
handlers = []
signal.signal(signal.SIGALRM, lambda *_: handlers.append(threading.current_thread()))
f(values)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
for _ in range(5):
    f(values)
signal.setitimer(signal.ITIMER_REAL, 0)
print(bool(handlers), set(handlers) == {threading.main_thread()})
"""
    completed = run_python(LARGE + code, flags="elemwise.threads=3")
    assert completed.stdout == "True True\n", completed.stderr
