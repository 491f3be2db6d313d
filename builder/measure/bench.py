"""Run a program of ``bench/`` in an environment, and describe the machine and its load.

Each measured program has its own home directory. Frameworks keep their compile caches there.
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
from builder.common.processes import clean_environ, count_cpus, run, select_own_kernels
from builder.environment import envs
from builder.measure import provenance, references
from builder.options import Options
from builder.stack import stacks

# The largest relative difference between the losses of a model in two frameworks, by dtype. Another
# order of summation gives a smaller difference, and another model gives a larger difference.
TOLERANCES = {"float64": 1e-6, "float32": 1e-3}


def prepare_environments(
    stack_names: Sequence[str], peers: Sequence[str], stock: bool = True
) -> list[str]:
    """Install the reference environments; return the names of all environments to measure.

    Args:
        stack_names: the stacks to measure.
        peers: the references to measure besides stock Theano, such as ``jax``.
        stock: whether to measure stock Theano.

    Returns:
        Stock Theano if it is measured, then the peers, then the stacks.

    Raises:
        UsageError: a stack or peer is unknown, or a stack has Python 2.7.
        EnvironmentFailed: a stack is not built, or a reference could not be installed.
    """
    for name in stack_names:
        stacks.load_with_python_3(
            name, "the comparison with stock Theano", "./invoke bench --what=2017"
        )
    built_stacks = require_built(stack_names)
    reference_names = [*([references.STOCK] if stock else []), *peers]
    for name in reference_names:
        references.install_reference(name, Options())
    return [*reference_names, *built_stacks]


def require_built(stack_names: Sequence[str]) -> list[str]:
    """Require that the environments of all stacks are installed; return the stacks' names.

    Raises:
        UsageError: a stack is unknown.
        EnvironmentFailed: a stack is not built.
    """
    for name in stack_names:
        envs.require_installed(stacks.load(name).name)
    return list(stack_names)


def describe_machine() -> dict[str, Any]:
    """Return the model of the processor and the number of CPUs that this process may use."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return {"processor": model, "cpus": count_cpus()}


def start_document() -> dict[str, Any]:
    """Return the keys with which each report starts: schema version and machine."""
    return {"schema_version": report.SCHEMA_VERSION, "machine": describe_machine()}


def describe_circumstances() -> dict[str, Any]:
    """Return the current time in UTC, and the machine's load average over the last minute."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"load": os.getloadavg()[0], "when": now.isoformat(timespec="seconds")}


def make_home(environment: str, name: str) -> Path:
    """Create the home directory of a measured program if needed; return it."""
    directory = paths.BENCHES / environment / name
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def make_environ(environment: str, home: Path) -> dict[str, str]:
    """Return the environment variables of a measured program, without the user's settings.

    In a stack with Theano 1.0.5, a failed optimizer raises an error. By default Theano would
    continue without the optimizer, and calls would be slower.

    Args:
        environment: a stack or a reference.
        home: the program's home directory.
    """
    environ = {**select_own_kernels(clean_environ()), "HOME": str(home)}
    if environment not in references.INTERPRETERS and not stacks.load(environment).has_python_2:
        environ["THEANO_FLAGS"] = "on_opt_error=raise"
    return environ


def run_measurement(
    environment: str, name: str, *command: str | Path, empty: bool
) -> dict[str, Any]:
    """Run a Python program in an environment.

    Args:
        environment: a stack or a reference.
        name: the name of the home directory.
        command: the program's file and its arguments.
        empty: first remove all files from the home directory, such as the compile caches.

    Returns:
        The JSON in the last line of the output. The keys ``when``, ``load`` and ``provenance`` are
        added.

    Raises:
        CommandFailed: the program fails.
    """
    home = make_home(environment, name)
    if empty:
        shutil.rmtree(home)
        home.mkdir()
    circumstances = describe_circumstances()
    environ = make_environ(environment, home)
    finished = run([envs.get_python_path(environment), *command], env=environ, cwd=home)
    result: dict[str, Any] = json.loads(finished.output.splitlines()[-1])
    return result | circumstances | {"provenance": provenance.describe(environment)}


def losses_agree(
    losses: Sequence[float], expected: Sequence[float], dtype: str = "float64"
) -> bool:
    """Return whether two sequences of losses of equal length agree within the dtype's tolerance.

    Raises:
        ValueError: the sequences have different lengths.
    """
    # Read all pairs: all() would return at the first difference, without this error.
    pairs = list(zip(losses, expected, strict=True))
    return all(math.isclose(*pair, rel_tol=TOLERANCES[dtype]) for pair in pairs)
