"""What every measurement of environments shares: which there are, where and when they run.

A measured program has a home of its own, in which frameworks keep what they compiled.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from builder import report
from builder.common import paths
from builder.common.processes import clean_environ, cpus, run
from builder.environment import envs
from builder.measure import references
from builder.pipeline import Options
from builder.stack import stacks

# Relative, in float64: what is compared is the model, not the order of a sum.
TOLERANCE = 1e-6


def prepare(chosen: Sequence[str], peers: Sequence[str]) -> list[str]:
    """Make the references; the environments to measure, stock Theano before ``chosen`` stacks.

    Raises:
        UsageError: there is no such stack or peer, or a stack has no Python 3.
        EnvironmentFailed: a stack is not built, or a reference could not be installed.
    """
    for name in chosen:
        stacks.of_today(name, "beside stock Theano, bench", "./invoke bench --what=2017")
    there = built(chosen)
    compared = [references.STOCK, *peers]
    for name in compared:
        references.create(name, Options())
    return [*compared, *there]


def built(chosen: Sequence[str]) -> list[str]:
    """The stacks ``chosen``, which are there.

    Raises:
        UsageError: there is no such stack.
        EnvironmentFailed: one is not built.
    """
    for name in chosen:
        envs.require(stacks.load(name).name)
    return list(chosen)


def machine() -> dict[str, Any]:
    """The processor that is measured, and how many of it."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return {"processor": model, "cpus": cpus()}


def document() -> dict[str, Any]:
    """What a report of this machine begins with."""
    return {"schema_version": report.SCHEMA_VERSION, "machine": machine()}


def circumstances() -> dict[str, Any]:
    """When something is measured, and how busy the machine has been."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"load": os.getloadavg()[0], "when": now.isoformat(timespec="seconds")}


def home(environment: str, name: str) -> Path:
    """The home of a measured program, made if it is not there."""
    directory = paths.BENCHES / environment / name
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def variables(home: Path) -> dict[str, str]:
    """The environment variables of a measured program: those of a user who set nothing."""
    return {**clean_environ(), "HOME": str(home)}


def answer(environment: str, name: str, *command: str | Path, empty: bool) -> dict[str, Any]:
    """Run a Python's command in an environment; the JSON that it ends with, and the circumstances.

    Args:
        name: of its home, without what is in that where it is to be ``empty``.

    Raises:
        CommandFailed: the command fails.
    """
    place = home(environment, name)
    if empty:
        shutil.rmtree(place)
        place.mkdir()
    observed = circumstances()
    done = run([envs.python(environment), *command], env=variables(place), cwd=place)
    told: dict[str, Any] = json.loads(done.output.splitlines()[-1])
    return told | observed


def agree(losses: Sequence[float], expected: Sequence[float]) -> bool:
    """Whether losses of as many calls are the same, but for how they are rounded."""
    pairs = zip(losses, expected, strict=True)
    return all(math.isclose(loss, other, rel_tol=TOLERANCE) for loss, other in pairs)
