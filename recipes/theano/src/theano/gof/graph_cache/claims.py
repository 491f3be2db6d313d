"""One process makes a function, and others that want the same one wait until it is made.

As many processes as an array of jobs has would else optimize the same graph and compile the same
modules, all at once. A claim is a lock of the kernel's on one byte of a file, so that it goes with
its process; the byte stands for the graph. Who has a claim waits for no other: there is no circle.
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

# In the compiledir; what is in its directory is not loaded.
FILE = Path("lock_dir", "functions")
# What a byte is while a function is made, or was when its process was killed, and once it was made.
MAKING, MADE = b"\0", b"\1"
# In bytes: what a disk must have left, for what is made to be kept and others to wait for it.
ROOM = 2**23


class Claims:
    """The claim that this process has, if any, and how deep it is in making functions."""

    def __init__(self) -> None:
        self.depth = 0
        # The claimed graph's, and the file's descriptor while it is open.
        self.path: Path | None = None
        self.file: int | None = None

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """While functions are made, which can be made within each other."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            if not self.depth:
                if self.file is not None and self.path:
                    with contextlib.suppress(OSError):
                        os.pwrite(self.file, MADE, place(self.path))
                self.release()

    def claim(self, path: Path) -> None:
        """Claim a function that was not made, or wait for who makes it.

        Args:
            path: where its graph is, or is to be, kept.
        """
        if not self.depth or self.path:
            return
        try:
            room = os.statvfs(config.compiledir)
            if room.f_bavail * room.f_frsize >= ROOM:
                file = Path(config.compiledir, FILE)
                file.parent.mkdir(0o755, exist_ok=True)
                self.file = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
                found = is_made(self.file, path) and path.exists()
                waited = lock(self.file, path, fcntl.LOCK_SH if found else fcntl.LOCK_EX)
                # Where the graph is not kept, nobody waits for a second one.
                found = found or (is_made(self.file, path) and (waited or path.exists()))
                if not found:
                    os.pwrite(self.file, MAKING, place(path))
                    self.path = path
        except OSError as error:
            # Where locks are refused, each process makes its own.
            _logger.debug("no claim of %s: %s", path, error)
        if not self.path:
            self.release()

    def release(self) -> None:
        """Give the claim back, if there is one."""
        self.path = None
        if self.file is not None:
            os.close(self.file)
            self.file = None

    def forget(self) -> None:
        """Be as new, in a process that was forked: the claim is its parent's."""
        self.release()
        self.depth = 0


def place(path: Path) -> int:
    """Return the byte that stands for a graph; that two share one costs a wait."""
    return int(path.name[:5], 16)


def is_made(file: int, path: Path) -> bool:
    """Tell whether a function was made, with its modules, since that of another process was begun.

    Raises:
        OSError: the file cannot be read.
    """
    return os.pread(file, 1, place(path)) == MADE


@functools.cache
def tell() -> None:
    """Say, once, that this process waits."""
    _logger.info("Waiting for another process that makes the same function")


def lock(file: int, path: Path, kind: int) -> bool:
    """Lock the byte of a graph, and return whether that was to be waited for.

    Raises:
        OSError: the file system refuses it.
    """
    try:
        fcntl.lockf(file, kind | fcntl.LOCK_NB, 1, place(path))
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise
        with lock_files.waiting(tell):
            fcntl.lockf(file, kind, 1, place(path))
        return True
    return False


claims = Claims()
