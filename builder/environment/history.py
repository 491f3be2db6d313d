"""Check that each package file has the same SHA-256 in all committed lock files."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from builder.common import paths
from builder.common.errors import ConfigurationError
from builder.common.processes import run
from builder.environment.envs import LOCK_NAME

# The line of a package in a lock file, or in a diff of a lock file.
LINE = re.compile(r"^[+-]?CHANNEL/(?P<file>\S+)#sha256:(?P<sha256>[0-9a-f]{64})$", re.MULTILINE)


def check_committed_locks() -> None:
    """Compare the lock files in ``envs/`` with all their committed versions.

    conda identifies a cached package by name, version and build. A change of a package's bytes
    therefore needs a new build number.

    Raises:
        ConfigurationError: a package file had another SHA-256 in an earlier version.
        CommandFailed: the checkout is not a git repository.
    """
    locks = sorted(paths.LOCKS.glob(f"*/{LOCK_NAME}"))
    log: list[str | Path] = ["git", "log", "--format=", "--patch", "--unified=0", "--", *locks]
    committed = run(log, cwd=paths.ROOT).output
    if reused := find_reused("\n".join(lock.read_text("utf-8") for lock in locks), committed):
        raise ConfigurationError(
            "these packages have other bytes than a committed package of the same name:\n  "
            + "\n  ".join(reused),
            "increase `build: number:` in their recipes, build them, and run ./invoke lock again",
        )


def find_reused(locked: str, committed: str) -> list[str]:
    """Return the sorted package files in ``locked`` that have more than one SHA-256.

    Args:
        locked: the text of the current lock files.
        committed: the diffs of lock files that ``git log`` prints.
    """
    digests = defaultdict(set)
    for match in LINE.finditer(f"{locked}\n{committed}"):
        digests[match["file"]].add(match["sha256"])
    current = {match["file"] for match in LINE.finditer(locked)}
    return sorted(file for file in current if len(digests[file]) > 1)
