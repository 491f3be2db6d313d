"""Read TOML files, lock directories, and replace files atomically."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builder.common.errors import CommandFailed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_toml(file: Path) -> dict[str, Any]:
    """Read and parse a TOML file.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not TOML, or not UTF-8.
    """
    return tomllib.loads(file.read_text(encoding="utf-8"))


def name_partial_file(file: Path) -> Path:
    """Return the path under which this process writes a file, before it renames the file.

    The leading dot hides the path from patterns of the shell. The process ID gives each process its
    own path, because several processes may write the file at once.
    """
    return file.with_name(f".{file.name}.{os.getpid()}.part")


def write_atomically(file: Path, content: bytes | str) -> None:
    """Write ``file`` under a temporary name and rename it; create its directory if needed.

    A reader sees the old content or the new content, never a part. Text is written as UTF-8.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    part = name_partial_file(file)
    try:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def lock_directory(directory: Path, message: str, hint: str) -> Iterator[None]:
    """Hold an exclusive lock on a directory as a context; do not wait for the lock.

    The lock is on the file ``<directory>.lock``. The directory itself need not exist. Create its
    parent if needed.

    Raises:
        CommandFailed: another process holds the lock. The error has ``message`` and ``hint``.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    with Path(f"{directory}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CommandFailed(message, hint) from error
        yield
