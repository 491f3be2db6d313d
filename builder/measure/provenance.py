"""Record the provenance of a measurement: commit, package builds and number of runs."""

from __future__ import annotations

import json
from typing import Any

from builder.common import paths
from builder.common.errors import CommandFailed, HostToolMissing
from builder.common.processes import run


def describe(environment: str, runs: int = 1) -> dict[str, Any]:
    """Describe the software of a measured environment.

    Args:
        environment: a stack or a reference in ``build/envs``.
        runs: the number of runs from which the value of the measurement is computed.

    Returns:
        ``commit``: the result of :func:`read_commit`; ``packages``: the version and build number of
        each package that affects the speed, by name; ``runs``: the number of runs.
    """
    packages = {}
    for file in sorted((paths.ENVIRONMENTS / environment / "conda-meta").glob("*.json")):
        package = json.loads(file.read_text(encoding="utf-8"))
        if package["name"] in ("theano", "numpy", "libopenblas", "mkl", "python"):
            packages[package["name"]] = f"{package['version']} build {package['build_number']}"
    return {"commit": read_commit(), "packages": packages, "runs": runs}


def read_commit() -> str:
    """Return the checkout's commit, with ``+`` if tracked files differ from it.

    Return "" if git is missing or this directory is not a git checkout.
    """
    try:
        finished = run(
            ["git", "-C", paths.ROOT, "describe", "--always", "--dirty=+", "--exclude=*"]
        )
    except (CommandFailed, HostToolMissing, OSError):
        return ""
    return finished.output.strip()
