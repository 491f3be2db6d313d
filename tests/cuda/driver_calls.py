"""Count the calls of NVIDIA's driver in training steps of a graph.

``driver_calls.py GRAPH [idle]``; ``idle`` is for a device whose kernels do not run.

GRAPH is a graph of bench/, such as ``lstm``. The program prints JSON: the number of calls in the
last step, by group; the shortest time of a step in ms; and the losses. It fails if the last two
steps make different calls. The first steps compile kernels and capture CUDA graphs.
"""

import json
import os
import sys
import time
from pathlib import Path

import models
import theano_step
from theano.gpuarray import graph_replay
from theano_fast.profiling import driver_calls

STEPS = 9


def measure_step(step):
    """Run one step; return its number of calls by group, its time in ms, and its loss."""
    file = Path(os.environ[driver_calls.VARIABLE])
    before = driver_calls.read(file)
    start = time.perf_counter()
    loss = step()
    ms = 1000 * (time.perf_counter() - start)
    after = driver_calls.read(file)
    counts = {group: calls - before.get(group, (0, 0))[0] for group, (calls, _) in after.items()}
    return counts, ms, loss


if __name__ == "__main__":
    if "idle" in sys.argv:
        # Results are undefined, so CUDA graphs cannot be compared with usual calls.
        graph_replay.is_same = lambda *_: True
    step, _ = theano_step.compile_step(models.select_size(sys.argv[1]))
    counts, times, losses = zip(*(measure_step(step) for _ in range(STEPS)), strict=True)
    assert counts[-1] == counts[-2], counts
    calls = {group: count for group, count in counts[-1].items() if count}
    print(json.dumps({"calls": calls, "ms": round(min(times), 2), "losses": losses}))
