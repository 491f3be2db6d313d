"""Verify an installed environment: run its ``theano-fast verify`` and read the JSON results."""

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

# The parsed JSON of ``theano-fast verify``.
Document = Mapping[str, Any]
# The start of the line that ``theano-fast verify`` prints for a check: its name and status.
CHECK = re.compile(r"^(\w+) +(passed|failed|skipped) ", re.MULTILINE)


def find_program(name: str) -> Path:
    """Return the path of ``theano-fast`` in a stack's environment.

    Raises:
        EnvironmentFailed: the environment is not built.
        UsageError: the stack is unknown, and therefore not built.
    """
    program = paths.ENVIRONMENTS / name / "bin" / "theano-fast"
    if envs.read_installed_digest(name) is None or not program.exists():
        # stacks.toml does not have the names of stacks with AMD's release of AOCL-LibM.
        stacks.load(name.replace(stacks.AOCL, ""))
        raise EnvironmentFailed(
            f"{program.parent.parent} is not built", f"./invoke build {stacks.format_flags(name)}"
        )
    return program


def verify(name: str, arguments: Iterable[str] = (), log: Path | None = None) -> dict[str, Any]:
    """Run ``theano-fast verify`` in a stack's environment.

    Args:
        name: the stack.
        arguments: flags of ``theano-fast verify``.
        log: the file for the output, which is printed only if a check fails; None to write the
            output to the caller's terminal.

    Returns:
        The parsed JSON of ``theano-fast verify``.

    Raises:
        EnvironmentFailed: the environment is not built.
        VerifyFailed: a check failed.
    """
    name = stacks.normalize_name(name)
    program = find_program(name)
    file = report.get_verification_file(name)
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
    """Verify an environment in a step, whose live line shows the number of finished checks.

    Print the output of ``theano-fast verify`` only if a check fails, or at the level VERBOSE.
    """
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


def format_check_counts(document: Document) -> str:
    """Format the numbers of passed and of skipped checks: "12 checks passed, 1 skipped"."""
    return re.sub(r" \(.*", "", summarize_checks(document))


def summarize_checks(document: Document) -> str:
    """Format the numbers and the skipped checks: "12 checks passed, 1 skipped (libm)"."""
    names: dict[str, list[str]] = {}
    for check in document.get("checks", []):
        names.setdefault(check["status"], []).append(check["name"])
    parts = [f"{len(names.get('passed', []))} checks passed"]
    if skipped := names.get("skipped"):
        parts.append(f"{len(skipped)} skipped ({', '.join(skipped)})")
    return ", ".join(parts)
