"""Run a program of ``bench/`` in an environment, and describe the machine and its load.

Each measured program has its own home directory, which contains the compile caches of frameworks.
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
from builder.common.processes import clean_environ, count_cpus, run
from builder.environment import envs
from builder.measure import provenance, references
from builder.options import Options
from builder.stack import stacks

# The largest relative difference of float64 losses. It permits another order of summation, but not
# another model.
TOLERANCE = 1e-6


def prepare_environments(chosen: Sequence[str], peers: Sequence[str]) -> list[str]:
    """Install the references; return all environments: stock Theano, peers, stacks.

    Raises:
        UsageError: a stack or peer is unknown, or a stack has Python 2.7.
        EnvironmentFailed: a stack is not built, or a reference could not be installed.
    """
    for name in chosen:
        stacks.load_with_python_3(
            name, "the comparison with stock Theano", "./invoke bench --what=2017"
        )
    built_stacks = require_built(chosen)
    compared = [references.STOCK, *peers]
    for name in compared:
        references.install_reference(name, Options())
    return [*compared, *built_stacks]


def require_built(chosen: Sequence[str]) -> list[str]:
    """Require that all stacks are built; return them.

    Raises:
        UsageError: a stack is unknown.
        EnvironmentFailed: a stack is not built.
    """
    for name in chosen:
        envs.require_installed(stacks.load(name).name)
    return list(chosen)


def describe_machine() -> dict[str, Any]:
    """Return the model of the processor and the number of CPUs that this process may use."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return {"processor": model, "cpus": count_cpus()}


def start_document() -> dict[str, Any]:
    """Return the first keys of a report on this machine."""
    return {"schema_version": report.SCHEMA_VERSION, "machine": describe_machine()}


def describe_circumstances() -> dict[str, Any]:
    """Return the time of a measurement, and the load of the machine before the measurement."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"load": os.getloadavg()[0], "when": now.isoformat(timespec="seconds")}


def make_home(environment: str, name: str) -> Path:
    """Create the home directory of a measured program if needed; return it."""
    directory = paths.BENCHES / environment / name
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def make_environ(environment: str, home: Path) -> dict[str, str]:
    """Return the environment variables of a measured program, without the user's settings.

    In a stack with Theano 1.0.5, a failed optimizer raises an error. Otherwise Theano would
    continue without the optimizer, and calls would be slower.
    """
    environ = {**clean_environ(), "HOME": str(home)}
    if environment not in references.INTERPRETERS and not stacks.load(environment).has_python_2:
        environ["THEANO_FLAGS"] = "on_opt_error=raise"
    return environ


def run_measurement(
    environment: str, name: str, *command: str | Path, empty: bool
) -> dict[str, Any]:
    """Run a Python program in an environment.

    Args:
        name: the name of the home directory.
        empty: remove all files from the home directory first.

    Returns:
        The JSON in the last line of the output, with the time and the load.

    Raises:
        CommandFailed: the program fails.
    """
    home = make_home(environment, name)
    if empty:
        shutil.rmtree(home)
        home.mkdir()
    observed = describe_circumstances()
    environ = make_environ(environment, home)
    done = run([envs.python_path(environment), *command], env=environ, cwd=home)
    result: dict[str, Any] = json.loads(done.output.splitlines()[-1])
    return result | observed | {"provenance": provenance.describe(environment)}


def losses_agree(losses: Sequence[float], expected: Sequence[float]) -> bool:
    """Return whether two sequences of losses agree within TOLERANCE."""
    pairs = zip(losses, expected, strict=True)
    return all(math.isclose(loss, other, rel_tol=TOLERANCE) for loss, other in pairs)
