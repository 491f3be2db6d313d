"""Verify an installed environment: run its ``theano-fast verify`` and read the results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from builder import report
from builder.common import paths, processes, progress
from builder.common.errors import EnvironmentFailed, VerifyFailed
from builder.environment import envs
from builder.package.steps import Step
from builder.stack import stacks

# The JSON of ``theano-fast verify``.
Document = Mapping[str, Any]
# An output line of ``theano-fast verify``.
CHECK = re.compile(r"^(\w+) +(passed|failed|skipped) ", re.MULTILINE)


def find_program(name: str) -> Path:
    """Return the ``theano-fast`` of a stack's environment.

    Raises:
        EnvironmentFailed: the environment was not built.
    """
    program = paths.ENVIRONMENTS / name / "bin" / "theano-fast"
    if envs.read_installed_digest(name) is None or not program.exists():
        stack = stacks.load(name)
        raise EnvironmentFailed(
            f"{program.parent.parent} is not built", f"./invoke build --stack={stack.name}"
        )
    return program


def verify(name: str, arguments: Iterable[str] = (), log: Path | None = None) -> dict[str, Any]:
    """Run ``theano-fast verify`` inside an environment, on the caller's terminal.

    Args:
        arguments: flags of ``theano-fast verify``.
        log: write the output to this file instead, and print it if a check fails.

    Returns:
        The JSON of ``theano-fast verify``.

    Raises:
        EnvironmentFailed: the environment was not built.
        VerifyFailed: a check failed.
    """
    name = stacks.normalize_name(name)
    program = find_program(name)
    file = report.verification_file(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    command: list[str | Path] = [program, "verify", "--json", file, *arguments]
    environ = processes.clean_environ()
    if log:
        status = processes.run_logged(command, env=environ, log=log)
    else:
        status = processes.run_on_terminal(command, env=environ)
    if status != 0:
        if log:
            progress.conclude(log.read_text("utf-8", "replace").rstrip())
        raise VerifyFailed(
            f"verification of the stack {name} failed (exit status {status})",
            f"the failed checks are above and in {progress.display_path(file)}",
        )
    return report.read(file)


def verify_in_step(name: str, step: Step) -> dict[str, Any]:
    """Verify an environment as a step; print the output only if a check fails or if verbose."""
    if progress.is_verbose():
        return verify(name)
    log = paths.LOGS / f"{name}-verify.log"

    def describe() -> str:
        try:
            count = len(CHECK.findall(log.read_text("utf-8", "replace")))
        except OSError:
            return ""
        return f"{count} check{'s' if count > 1 else ''} done" if count else ""

    log.unlink(missing_ok=True)
    step.describe = describe
    return verify(name, log=log)


def count_checks(document: Document) -> str:
    """Format the numbers of passed and of skipped checks."""
    return re.sub(r" \(.*", "", summarize(document))


def summarize(document: Document) -> str:
    """Format the numbers of passed and of skipped checks, with the names of the skipped checks."""
    names: dict[str, list[str]] = {}
    for check in document.get("checks", []):
        names.setdefault(check["status"], []).append(check["name"])
    parts = [f"{len(names.get('passed', []))} checks passed"]
    if skipped := names.get("skipped"):
        parts.append(f"{len(skipped)} skipped ({', '.join(skipped)})")
    return ", ".join(parts)
