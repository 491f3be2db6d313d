"""Check that BLAS and OpenMP start one thread for each CPU that the process may use."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

from theano_fast import blas, libraries, threads
from theano_fast.checks.result import Options, Result

# The command that prints the output of read_thread_counts.
PROBE = (sys.executable, "-P", "-m", "theano_fast.checks.threads")


def run(options: Options) -> Result:
    """Check a new process on one CPU, and a new process on all CPUs of this process."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in (*threads.USER_VARIABLES, threads.MARK)
    }
    all_cpus = os.sched_getaffinity(0)
    measured, failures = {}, []
    for cpus in ({min(all_cpus)}, all_cpus):
        os.sched_setaffinity(0, cpus)
        expected = threads.count_available(environ)
        probed = subprocess.run(PROBE, env=environ, capture_output=True, text=True, check=False)
        if probed.returncode != 0:
            reason = probed.stderr.strip().splitlines()[-1:]
            return Result(failures=("the probing process failed", *reason))
        counts = json.loads(probed.stdout)
        measured[f"on {len(cpus)} CPUs"] = {"expected": expected, **counts}
        failures += [
            f"{name} starts with {count['threads']} threads where the process may use {expected}"
            for name, count in counts.items()
            if count["threads"] != min(expected, count["most"])
        ]
    return Result(
        summary=f"{expected} threads for {' and '.join(counts)}",
        failures=tuple(failures),
        measurements=measured,
    )


def read_thread_counts() -> dict[str, dict[str, int]]:
    """Return the numbers of threads of BLAS and OpenMP, by the library's file name.

    ``threads`` is the current number; ``most`` is the largest number that the library uses.
    """
    importlib.import_module("numpy")
    counts = {
        library.name: {
            "threads": blas.count_threads(library),
            "most": blas.read_most_threads(library),
        }
        for library in blas.list_loaded()
    }
    runtimes = libraries.find_openmp(libraries.list_mapped())
    for runtime in runtimes or (f"{sys.base_prefix}/lib/libgomp.so.1",):
        count = blas.count_openmp_threads(runtime)
        counts[Path(runtime).name] = {"threads": count, "most": sys.maxsize}
    return counts


if __name__ == "__main__":
    print(json.dumps(read_thread_counts()))
