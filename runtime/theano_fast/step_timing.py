"""Time a small training step under the current flags: ``-m theano_fast.step_timing`` prints JSON.

The step has the operations of typical programs: products inside and outside a scan, elementwise
operations, their gradients, and updates.
"""

import json
import time
from typing import Any

import numpy as np
import theano
import theano.tensor as T

STEPS, BATCH, INPUTS, UNITS = 30, 32, 256, 64
# Stop after LEAST seconds of calls if there were at least five calls; otherwise after MOST seconds.
LEAST, MOST = 0.5, 5.0


def measure() -> dict[str, float]:
    """Return the seconds to the step's first result (``first``), and of a later call (``call``)."""
    random = np.random.RandomState(0)
    started = time.perf_counter()
    step = compile_step(random)
    x = random.standard_normal((STEPS, BATCH, INPUTS)).astype(theano.config.floatX)
    step(x)
    first = time.perf_counter() - started
    calls: list[float] = []
    while sum(calls) < (LEAST if len(calls) >= 5 else MOST):
        started = time.perf_counter()
        step(x)
        calls.append(time.perf_counter() - started)
    # Report the least time, because other programs can only slow a call down.
    return {"first": first, "call": min(calls)}


def compile_step(random: np.random.RandomState) -> Any:
    """Compile the training step: a function of a batch, of shape (STEPS, BATCH, INPUTS)."""

    def shared(*shape: int) -> Any:
        values = random.standard_normal(shape) * 0.1
        return theano.shared(values.astype(theano.config.floatX))

    x, weights = T.tensor3(), [shared(INPUTS, UNITS), shared(UNITS, UNITS), shared(UNITS, INPUTS)]
    states, _ = theano.scan(
        lambda x_t, state: T.tanh(T.dot(x_t, weights[0]) + T.dot(state, weights[1])),
        sequences=[x],
        outputs_info=[T.zeros((BATCH, UNITS), dtype=theano.config.floatX)],
    )
    cost = T.nnet.sigmoid(T.dot(states[-1], weights[2])).sum() + T.exp(-(x**2)).mean()
    slopes = zip(weights, theano.grad(cost, weights), strict=True)
    return theano.function(
        [x], cost, updates=[(weight, weight - 0.01 * slope) for weight, slope in slopes]
    )


if __name__ == "__main__":
    print(json.dumps(measure()))
