"""Atomic replacement of files that other processes read and write at the same time."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path


def replace_file(path: str | Path, content: bytes) -> None:
    """Write bytes to a file; other processes read the old or the new content, never a part.

    Raises:
        OSError: the file cannot be written; the old content remains.
    """
    # Processes on several hosts, and several threads, may write the same file.
    temporary = Path(f"{path}.{os.uname().nodename}.{os.getpid()}.{threading.get_ident()}")
    try:
        # With this mode, only this user may write to the file, with any umask.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
