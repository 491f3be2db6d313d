"""Locks of directories that one run has to itself."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from builder.common.errors import CommandFailed


@contextlib.contextmanager
def alone(directory: Path, taken: str, advice: str) -> Iterator[None]:
    """Have a directory, which need not be there yet, until the context ends.

    Raises:
        CommandFailed: another process has it; ``taken`` and ``advice`` are its message.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with Path(f"{directory}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CommandFailed(taken, advice) from error
        yield
