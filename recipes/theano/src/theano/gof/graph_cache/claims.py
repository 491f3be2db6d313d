"""Claims: byte-range locks with which processes wait for a process that makes the same function.

To make a function is to optimize its graph and to compile its modules. Without claims, all
processes of a job array would optimize the same graph and compile the same modules at once. A claim
is a kernel lock on one byte of a file. The kernel releases the claim when its process ends. The
byte's offset is derived from the graph's cache key. A process that has a claim never waits for
another claim, so there is no deadlock.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from theano import config
from theano.gof import lock_files, module_files

_logger = logging.getLogger("theano.gof.compilelock")

# The lock file, relative to the compiledir. It is in lock_dir because Theano searches all other
# directories of the compiledir for modules.
FILE = Path("lock_dir", "functions")
# The values of a graph's byte. MAKING: a process is making the function, or was killed before it
# finished. MADE: the graph was optimized and the modules were compiled, or an error was raised.
MAKING, MADE = b"\0", b"\1"


class Claims:
    """The claim of this process: at most one at a time.

    Attributes:
        depth: the number of nested functions that this process is making. A Scan, for example,
            makes its inner function.
        path: the cache entry of the claimed graph, or None.
        file: the descriptor of the open lock file, or None.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.path: Path | None = None
        self.file: int | None = None

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """Increment `depth` while a function is made.

        When the outermost function is made, mark the claimed graph as made and release the claim.
        """
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            if not self.depth:
                if self.file is not None and self.path:
                    with contextlib.suppress(OSError):
                        os.pwrite(self.file, MADE, compute_byte_offset(self.path))
                self.release()

    def claim(self, path: Path) -> None:
        """Claim a function that is not made yet, or wait for the process that is making it.

        Do nothing outside of `making`, or if this process already has a claim.

        Args:
            path: the cache entry of the function's graph.
        """
        if not self.depth or self.path:
            return
        try:
            # On a full disk, the graph and the modules cannot be cached. So a process that waited
            # would have to make the function anyway.
            if module_files.has_room(config.compiledir):
                self.file = lock_files.open_lock(Path(config.compiledir, FILE))
                is_done = is_made(self.file, path) and path.exists()
                waited = lock_byte(self.file, path, fcntl.LOCK_SH if is_done else fcntl.LOCK_EX)
                # After a wait, do not require the cache entry: some graphs are never cached.
                is_done = is_done or (is_made(self.file, path) and (waited or path.exists()))
                if not is_done:
                    os.pwrite(self.file, MAKING, compute_byte_offset(path))
                    self.path = path
        except OSError as error:
            # If the file system has no locks, each process makes the function for itself.
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


def compute_byte_offset(path: Path) -> int:
    """Return the offset of a graph's byte in the lock file.

    The offset is less than 2**20. If two graphs have the same byte, their processes wait for each
    other needlessly, which is harmless.

    Args:
        path: the cache entry of the graph; its name is the cache key, in hexadecimal digits.
    """
    return int(path.name[:5], 16)


def is_made(file: int, path: Path) -> bool:
    """Return whether a graph's byte has the value MADE.

    Args:
        file: the descriptor of the lock file.
        path: the cache entry of the graph.

    Raises:
        OSError: the file cannot be read.
    """
    return os.pread(file, 1, compute_byte_offset(path)) == MADE


@functools.cache
def log_wait() -> None:
    """Log that this process waits, once per process."""
    _logger.info("Waiting for another process that makes the same function")


def lock_byte(file: int, path: Path, kind: int) -> bool:
    """Lock the byte of a graph; return whether this process waited for another process.

    Args:
        file: the descriptor of the lock file.
        path: the cache entry of the graph.
        kind: fcntl.LOCK_SH for a shared lock, or fcntl.LOCK_EX for an exclusive lock.

    Raises:
        OSError: the file system supports no locks.
    """
    if lock_files.try_lock(file, kind, 1, compute_byte_offset(path)):
        return False
    with lock_files.report_wait(log_wait):
        fcntl.lockf(file, kind, 1, compute_byte_offset(path))
    return True


claims = Claims()
