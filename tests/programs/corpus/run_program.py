"""Run a program; print its results, the seconds to the first result, and failures as JSON.

Usage: ``python run_program.py NAME``. The script also runs on stock Theano's Python 3.9. It counts
seconds from its own start. With ``--old-names``, it adds a module that Theano 1.0.5 lacks.
"""

import importlib
import json
import sys
import time
from pathlib import Path

STARTED = time.perf_counter()
CONFORMANCE = Path(__file__).resolve().parents[3] / "conformance"


def supply_old_names():
    """Add the module theano.tensor.signal.downsample of Theano 0.8."""
    from theano.tensor import signal
    from theano.tensor.signal import pool

    module = type(sys)("theano.tensor.signal.downsample")
    module.max_pool_2d = pool.pool_2d
    sys.modules[module.__name__] = signal.downsample = module


def main(name):
    """Run a program, and return its outcome.

    Returns:
        A dictionary: ``results``, ``seconds`` to the first result, and ``failures``: a line for
        each failed optimizer.
    """
    sys.path.insert(0, str(CONFORMANCE))
    from logged_failures import LoggedFailures

    results, seconds = [], 0.0
    with LoggedFailures() as failures:
        for result in importlib.import_module(name).results():
            seconds = seconds or time.perf_counter() - STARTED
            results.append(result)
    return {"results": results, "seconds": seconds, "failures": failures.lines}


if __name__ == "__main__":
    if "--old-names" in sys.argv:
        supply_old_names()
    print(json.dumps(main(sys.argv[1])))
