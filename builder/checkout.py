"""List the stacks and their states in this checkout; remove the results of builds."""

from __future__ import annotations

import shutil

from builder import report
from builder.common import paths, progress
from builder.environment import envs
from builder.stack import stacks


def list_stacks() -> None:
    """Print a table of all stacks: name, axes, and state (``verified``, ``built`` or ``-``).

    A stack is verified if its report has the digest of the installed lock file and a verification.
    """
    rows = []
    for stack in stacks.load_all():
        digest = envs.read_installed_digest(stack.name)
        document = report.read(report.get_stack_file(stack.name))
        is_verified = digest is not None and document.get("lock") == digest and "verify" in document
        state = "verified" if is_verified else "built" if digest else "-"
        rows.append([stack.name, *stack.axes.values(), state])
    progress.print_table(["stack", *stacks.AXES, "state"], rows)


def clean(*, cache: bool) -> None:
    """Remove ``build/``; with ``cache``, also remove the per-user cache."""
    for directory in (paths.BUILD, *([paths.get_cache()] if cache else [])):
        if directory.exists():
            shutil.rmtree(directory)
            progress.say(f"removed {directory}")
