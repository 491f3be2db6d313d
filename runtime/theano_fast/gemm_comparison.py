"""Compare the speed of matrix products in the stacks of this environment's folder."""

import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from theano_fast import report, stack

ROUNDS = 3


class ComparisonError(Exception):
    """The speed of matrix products in an environment could not be measured."""


def compare(prefixes: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """Measure environments in ROUNDS rounds; return ``theano_fast.gemm``'s output by stack.

    Keep the best rates of all rounds, because other programs can only slow a round down.

    Args:
        prefixes: the prefix of each stack's environment, by the stack's name.

    Raises:
        ComparisonError: the measurement failed in an environment.
    """
    best: dict[str, dict[str, Any]] = {}
    turns, started = [*prefixes.items()] * ROUNDS, time.monotonic()
    for number, (name, prefix) in enumerate(turns, 1):
        command = [str(prefix / "bin" / "python"), "-P", "-m", "theano_fast.gemm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = done.stderr.strip().splitlines()[-1:]
            raise ComparisonError(f"{prefix} cannot be measured: {' '.join(last)}")
        measured = json.loads(done.stdout)
        before = best.get(name, measured)["rates"]
        measured["rates"] = {key: max(rate, before[key]) for key, rate in measured["rates"].items()}
        best[name] = measured
        report.print_progress(number, len(turns), started, name)
    return best


def render(best: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of GFLOP/s with a column for each stack, and name the fastest stack."""
    names = sorted(best)
    lines = [f"{'GFLOP/s of gemm':<24}" + "".join(f"{name:>20}" for name in names)]
    for key in best[names[0]]["rates"]:
        dtype, size, _, count = key.split()
        row = f"{dtype}, {size}, {count} thread{'s' * (count != '1')}"
        lines.append(f"{row:<24}" + "".join(f"{best[name]['rates'][key]:>20.1f}" for name in names))
    means = {name: geometric_mean(best[name]["rates"].values()) for name in names}
    lines.append(f"{'geometric mean':<24}" + "".join(f"{means[name]:>20.1f}" for name in names))
    lines += [f"{name}: {best[name]['blas']}" for name in names]
    if len(names) == 1:
        return "\n".join([*lines, "this environment's folder contains no other stack"])
    first, second = sorted(names, key=means.__getitem__, reverse=True)[:2]
    ratio = means[first] / means[second]
    fastest = f"{first} is the fastest here: {ratio:.2f} times the speed of {second}"
    return "\n".join([*lines, fastest])


def find_built_stacks() -> dict[str, Path]:
    """Return the prefixes of this environment and of the stacks in its folder, by stack.

    Raises:
        stack.StackError: this environment contains no stack.
    """
    return {stack.load(prefix).name: prefix for prefix in stack.find_siblings()}
