"""Train the Neural Turing Machine like the user's benchmark of 2017, with Theano's profile.

Start ``python training_of_2017.py SIZE CALLS FILE``, with Python 2.7 or 3.11. SIZE is ``small`` or
``full``. Processes share a lock on FILE while they compile, and hold it exclusively while they make
calls. So several processes can compile at once, but only one process at a time makes calls, and no
process compiles during these calls. The last line of the output is JSON:

- ``calls``: seconds of CALLS calls of the training step;
- ``compile``: seconds of the compilation of the training step;
- ``optimizer``: seconds of ``compile`` that the optimizer takes;
- ``grad_of_scan``: seconds of the scan that computes the gradient, in all calls;
- ``ops``: for each op of OPS in this scan, the seconds, and whether the op runs in C or Python;
- ``losses``: losses of the first calls and the last call, each before the call's update;
- ``check_blas``: seconds of 10 products of matrices of order 2000;
- ``ldflags``: Theano's flag ``blas.ldflags``.
"""

from __future__ import print_function

import fcntl
import json
import os
import sys
import time

import numpy as np
import theano
import theano.tensor as T
from theano_fast import ntm, rmsprop

# The ops of the user's table.
OPS = ("Dot22", "Elemwise", "Gemm", "Gemv", "Ger", "Split")
# The number of reported losses of first calls.
LOSSES = 3
# The order of the matrices in check_blas, and the number of products.
ORDER, PRODUCTS = 2000, 10
# Maps a size to the sizes of the Neural Turing Machine and the learning rate.
SIZES = {"small": (ntm.SMALL, 1e-2), "full": (ntm.FULL, 1e-4)}


def main(size, calls, lock):
    """Compile and train; return the measurements.

    Args:
        size: a key of SIZES.
        calls: the number of calls to measure.
        lock: the open file that the processes lock.
    """
    fcntl.flock(lock, fcntl.LOCK_SH)
    machine_size, rate = SIZES[size]
    machine = ntm.build(machine_size, profile=True)
    parameters = list(machine.parameters.values())
    gradients = theano.grad(machine.loss, parameters)
    train = theano.function(
        [machine.inputs, machine.targets],
        machine.loss,
        updates=rmsprop.updates(parameters, gradients, rate),
        profile=True,
    )
    batch = ntm.copy_task(machine.size, seed=1)
    fcntl.flock(lock, fcntl.LOCK_UN)
    fcntl.flock(lock, fcntl.LOCK_EX)
    started = time.time()
    losses = [float(train(*batch)) for _ in range(calls)]
    seconds = time.time() - started
    inner = find_gradient_scan(train)
    return {
        "calls": seconds,
        "compile": train.profile.compile_time,
        "optimizer": train.profile.optimizer_time,
        "grad_of_scan": inner.call_time,
        "ops": sum_by_class(inner),
        "losses": losses[:LOSSES] + losses[-1:],
        "check_blas": time_check_blas(),
        "ldflags": theano.config.blas.ldflags,
    }


def find_gradient_scan(train):
    """Return the profile of the slowest scan of a function. This scan computes the gradient."""
    ops = [node.op for node in train.maker.fgraph.toposort()]
    profiles = [op.fn.profile for op in ops if type(op).__name__ == "Scan"]
    return max(profiles, key=lambda profile: profile.call_time)


def sum_by_class(profile):
    """Sum the seconds of the OPS in a profile, by name of the op's class.

    CGemv and CGer, the implementations in C, count as Gemv and Ger.

    Returns:
        {class: (seconds, kind)}; the kind is "C", "Py" or "C Py".
    """
    times = {}
    for key, seconds in profile.apply_time.items():
        # In newer versions of Theano, a key is a tuple whose last element is the node.
        node = key[-1] if isinstance(key, tuple) else key
        name = type(node.op).__name__
        name = name[1:] if name[:1] == "C" and name[1:] in OPS else name
        if name in OPS:
            kind = "C" if profile.apply_cimpl[key] else "Py"
            before, kinds = times.get(name, (0.0, set()))
            times[name] = (before + seconds, kinds | {kind})
    return {name: (total, " ".join(sorted(kinds))) for name, (total, kinds) in times.items()}


def time_check_blas():
    """Return the seconds of PRODUCTS products, as in Theano's check_blas."""
    value = np.ones((ORDER, ORDER), theano.config.floatX)
    a, b, c = (theano.shared(value) for _ in range(3))
    multiply = theano.function([], updates=[(c, 0.4 * c + 0.8 * T.dot(a, b))])
    multiply()
    started = time.time()
    for _ in range(PRODUCTS):
        multiply()
    return time.time() - started


if __name__ == "__main__":
    with open(sys.argv[3], "a") as file:
        print(json.dumps(main(sys.argv[1], int(sys.argv[2]), file)))
    sys.stdout.flush()
    # Skip atexit functions: Theano's function would print the profile after the JSON.
    os._exit(0)
