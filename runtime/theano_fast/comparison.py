"""Which of the stacks built on this machine multiplies matrices fastest on its CPU, and why."""

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
    """A stack's environment could not be measured."""


def compare(prefixes: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """Measure the environments of stacks in turns; return the best rates of each.

    Other programs only ever make a round slower.

    Raises:
        ComparisonError: an environment's interpreter failed.
    """
    best: dict[str, dict[str, Any]] = {}
    turns, started = [*prefixes.items()] * ROUNDS, time.monotonic()
    for number, (name, prefix) in enumerate(turns, 1):
        command = [str(prefix / "bin" / "python"), "-P", "-m", "theano_fast.gemm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = done.stderr.strip().splitlines()[-1:]
            raise ComparisonError(f"{prefix} cannot be measured: {' '.join(last)}")
        told = json.loads(done.stdout)
        before = best.get(name, told)["rates"]
        told["rates"] = {key: max(rate, before[key]) for key, rate in told["rates"].items()}
        best[name] = told
        report.progress(number, len(turns), started, name)
    return best


def render(best: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table of GFLOP/s, a column for each stack, and which stack is the fastest."""
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
        return "\n".join([*lines, "no other stack is built beside this one to compare it with"])
    first, second = sorted(names, key=means.__getitem__, reverse=True)[:2]
    ratio = means[first] / means[second]
    return "\n".join([*lines, f"{first} is the fastest here, by {ratio:.2f} x before {second}"])


def built() -> dict[str, Path]:
    """Return this environment and those of other stacks beside it, by stack.

    Raises:
        stack.StackError: this environment is of no stack.
    """
    return {stack.load(prefix).name: prefix for prefix in stack.beside()}
