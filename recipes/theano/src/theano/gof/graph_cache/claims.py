"""Claims: byte-range locks by which one process makes a function while others wait for it.

Without claims, all processes of a job array would optimize the same graph and compile the same
modules at once. A claim is a kernel lock on one byte of a file, so the kernel releases it when its
process ends. The byte's offset is derived from the graph's cache key. A process with a claim never
waits for another claim, so there is no deadlock.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from theano import config
from theano.gof import lock_files

_logger = logging.getLogger("theano.gof.compilelock")

# The path is relative to the compiledir. Theano loads no modules from lock_dir.
FILE = Path("lock_dir", "functions")
# The value of a graph's byte: the function is in progress (or its process was killed), or is made.
MAKING, MADE = b"\0", b"\1"
# With less free space, in bytes, nothing can be cached, so processes do not wait.
ROOM = 2**23


class Claims:
    """The claim of this process: at most one at a time.

    Attributes:
        depth: the number of functions that this process is making, nested inside of each other.
        path: the cache entry of the claimed graph, or None.
        file: the descriptor of the open lock file, or None.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.path: Path | None = None
        self.file: int | None = None

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """Count a function that is being made; after the outermost, mark it as made and release."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            if not self.depth:
                if self.file is not None and self.path:
                    with contextlib.suppress(OSError):
                        os.pwrite(self.file, MADE, byte_offset(self.path))
                self.release()

    def claim(self, path: Path) -> None:
        """Claim a function that is not made yet, or wait for the process that is making it.

        Args:
            path: the cache entry of the function's graph.
        """
        if not self.depth or self.path:
            return
        try:
            room = os.statvfs(config.compiledir)
            if room.f_bavail * room.f_frsize >= ROOM:
                file = Path(config.compiledir, FILE)
                file.parent.mkdir(0o755, exist_ok=True)
                self.file = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
                made = is_made(self.file, path) and path.exists()
                waited = lock_byte(self.file, path, fcntl.LOCK_SH if made else fcntl.LOCK_EX)
                # After one wait, the function counts as made even if its graph is not cached.
                made = made or (is_made(self.file, path) and (waited or path.exists()))
                if not made:
                    os.pwrite(self.file, MAKING, byte_offset(path))
                    self.path = path
        except OSError as error:
            # Without locks, each process makes the function for itself.
            _logger.debug("no claim of %s: %s", path, error)
        if not self.path:
            self.release()

    def release(self) -> None:
        """Release the claim, if there is one."""
        self.path = None
        if self.file is not None:
            os.close(self.file)
            self.file = None

    def forget(self) -> None:
        """Reset the state in a forked process: the claim belongs to the parent."""
        self.release()
        self.depth = 0


def byte_offset(path: Path) -> int:
    """Return the offset of a graph's byte in the lock file.

    Two graphs that share a byte wait for each other needlessly, which is harmless.
    """
    return int(path.name[:5], 16)


def is_made(file: int, path: Path) -> bool:
    """Return whether a graph's byte records that its function and modules were made.

    Raises:
        OSError: the file cannot be read.
    """
    return os.pread(file, 1, byte_offset(path)) == MADE


@functools.cache
def log_wait() -> None:
    """Log, once, that this process waits."""
    _logger.info("Waiting for another process that makes the same function")


def lock_byte(file: int, path: Path, kind: int) -> bool:
    """Lock the byte of a graph; return whether another process held the lock.

    Args:
        file: the descriptor of the lock file.
        path: the cache entry of the graph.
        kind: fcntl.LOCK_SH or fcntl.LOCK_EX.

    Raises:
        OSError: the file system supports no locks.
    """
    try:
        fcntl.lockf(file, kind | fcntl.LOCK_NB, 1, byte_offset(path))
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise
        with lock_files.report_wait(log_wait):
            fcntl.lockf(file, kind, 1, byte_offset(path))
        return True
    return False


claims = Claims()
