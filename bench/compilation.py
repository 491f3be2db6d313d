"""Measure the time from the import of a framework to the result of a graph's first call.

``python compilation.py FRAMEWORK GRAPH [DTYPE]`` prints JSON on its last line. FRAMEWORK is theano,
pytensor or jax. GRAPH is a name such as ``lstm`` or, with a size, ``lstm6``
(``models.select_size``). DTYPE is float64 (the default) or float32.

- ``phases``: wall seconds by phase, in order; their sum is the time to the first result;
- ``background``: wall seconds from the first result until all compilers have ended and their code
  is in use; it includes LOSSES - 1 calls;
- ``cpu``: CPU seconds of the process and its compilers until the end of ``background``;
- ``peak_memory``: peak resident memory of this process until the first result, in bytes;
- ``compilers``: number of g++ processes;
- ``losses``: losses of the first calls, each before the call's update;
- ``call``: median wall seconds of CALLS later calls;
- ``bound``: the two times of a call's bound, in seconds (``bounds.measure_bound``).
"""

from __future__ import annotations

import importlib
import json
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

# The number of timed calls.
CALLS = 20
# The number of reported losses.
LOSSES = 3


def record_compilers() -> list[str]:
    """Install an audit hook; return a list to which the hook adds the name of each started g++."""
    started: list[str] = []

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            program = Path(str(arguments[0])).name
            if program.endswith("g++"):
                started.append(program)

    sys.addaudithook(hook)
    return started


def read_cpu_seconds() -> float:
    """Return the CPU seconds, user and system, of this process and of its ended child processes."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def read_peak_memory() -> int:
    """Return the peak resident memory of this process in bytes."""
    # Do not use getrusage: its peak includes the parent process.
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def measure(framework: str, graph: str, dtype: str = "float64") -> dict[str, Any]:
    """Import a framework, compile a graph's training step, call it, and return the measurements."""
    compilers = record_compilers()
    started = time.perf_counter()
    module = importlib.import_module(f"{framework}_step")
    imported = time.perf_counter()
    models: Any = importlib.import_module("models")
    models.DTYPE = dtype
    graph = models.select_size(graph)
    step, phases = module.compile_step(graph)
    compiled = time.perf_counter()
    losses = [step()]
    called = time.perf_counter()
    peak_memory = read_peak_memory()
    losses += [step() for _ in range(LOSSES - 1)]
    getattr(module, "finish_compilation", lambda: None)()
    result = {
        "phases": {"import": imported - started, **phases, "first call": called - compiled},
        "background": time.perf_counter() - called,
        "cpu": read_cpu_seconds(),
        "peak_memory": peak_memory,
        "compilers": len(compilers),
    }
    seconds = []
    for _ in range(CALLS):
        began = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - began)
    return {
        **result,
        "losses": losses,
        "call": statistics.median(seconds),
        # Import bounds last: it imports NumPy, and the phase "import" must include NumPy's import.
        "bound": importlib.import_module("bounds").measure_bound(graph),
    }


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
