"""Train the Neural Turing Machine like the user's benchmark of 2017, with Theano's profile.

``python training_of_2017.py SIZE CALLS FILE`` runs on Python 2.7 and 3.11. SIZE is ``small`` or
``full``. Processes lock FILE: several processes may compile at once, but a process makes its calls
alone. The last line is JSON; all values except the losses are seconds:

- ``calls``: CALLS calls of the training step;
- ``compile``, ``optimizer``: the time until the first call;
- ``grad_of_scan``: the scan of the gradient, in all calls;
- ``ops``: each op of the user's table in that scan, and whether it runs in C or in Python;
- ``losses``: the losses of the first calls and the last call, each before its update;
- ``check_blas``: 10 products of matrices of order 2000.
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

OPS = ("Dot22", "Elemwise", "Gemm", "Gemv", "Ger", "Split")
LOSSES = 3
ORDER, PRODUCTS = 2000, 10
SIZES = {"small": (ntm.SMALL, 1e-2), "full": (ntm.FULL, 1e-4)}


def main(size, calls, turns):
    """Compile and train; return the measurements."""
    fcntl.flock(turns, fcntl.LOCK_SH)
    extents, rate = SIZES[size]
    machine = ntm.build(extents, profile=True)
    parameters = list(machine.parameters.values())
    slopes = theano.grad(machine.loss, parameters)
    train = theano.function(
        [machine.inputs, machine.targets],
        machine.loss,
        updates=rmsprop.updates(parameters, slopes, rate),
        profile=True,
    )
    batch = ntm.copy_task(machine.size, seed=1)
    fcntl.flock(turns, fcntl.LOCK_UN)
    fcntl.flock(turns, fcntl.LOCK_EX)
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
    """Return the profile of the slowest scan, which computes the gradient."""
    ops = [node.op for node in train.maker.fgraph.toposort()]
    profiles = [op.fn.profile for op in ops if type(op).__name__ == "Scan"]
    return max(profiles, key=lambda profile: profile.call_time)


def sum_by_class(profile):
    """Return {class: (seconds, "C", "Py" or both)} for the OPS in a profile.

    CGemv and CGer are Gemv and Ger in C.
    """
    times = {}
    for key, seconds in profile.apply_time.items():
        # The keys of newer profiles contain the function too.
        node = key[-1] if isinstance(key, tuple) else key
        name = type(node.op).__name__
        name = name[1:] if name[:1] == "C" and name[1:] in OPS else name
        if name in OPS:
            kind = "C" if profile.apply_cimpl[key] else "Py"
            before, kinds = times.get(name, (0.0, set()))
            times[name] = (before + seconds, kinds | {kind})
    return {name: (total, " ".join(sorted(kinds))) for name, (total, kinds) in times.items()}


def time_check_blas():
    """Return the seconds of the same products as Theano's check_blas, in its default size."""
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
    # Otherwise Theano prints its profile after the last line.
    os._exit(0)
