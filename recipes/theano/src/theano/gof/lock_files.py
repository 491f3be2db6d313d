"""Kernel locks on files, lock files for file systems that refuse them, and messages on waiting."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import logging
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

_logger = logging.getLogger("theano.gof.compilelock")

# The seconds to wait for a lock before a message is logged.
PATIENCE = 5
# The holder touches the file every BEAT seconds. After SILENCE seconds without a touch, other
# processes consider the holder dead. A network file system may delay a touch by much more than
# BEAT.
BEAT = 10
SILENCE = 120


def write_holder(file: IO[str]) -> None:
    """Write the holder's name into a file that the kernel locked, for waiting processes.

    Do nothing if the disk is full.
    """
    holder = f"process {os.getpid()} on {socket.gethostname()}\n".encode()
    with contextlib.suppress(OSError):
        # Usually the file already names this process, which was the previous holder.
        if os.pread(file.fileno(), len(holder) + 1, 0) != holder:
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), holder)


@functools.cache
def log_holder(path: str) -> None:
    """Log, once for a path, the process that holds the lock."""
    holder = _text(path).strip().removeprefix("process ") or "of unknown number"
    _logger.info("Waiting for the compile lock %s, held by process %s", path, holder)


@contextlib.contextmanager
def report_wait(log: Callable[..., None], *arguments: str) -> Iterator[None]:
    """Call `log` if the block, which acquires a lock, takes longer than PATIENCE seconds."""
    timer = threading.Timer(PATIENCE, log, arguments)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class NoLock:
    """Lock of a read-only directory: no process writes, so none has to wait."""

    def close(self) -> None:
        """Do nothing."""


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _started(process: int | str) -> str:
    """Return a process's start time, or "" if there is no such process.

    The start time distinguishes a process from a later process with the same number.
    """
    return " ".join(_text(f"/proc/{process}/stat").rpartition(")")[2].split()[19:20])


def _here() -> str:
    """Return an identifier of the host's boot and container, where process numbers are unique."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{_text('/proc/sys/kernel/random/boot_id').strip()}/{namespace}"


def _is_dead(holder: str) -> bool:
    """Return whether the process that wrote a lock file has certainly ended."""
    try:
        process, started, where, _ = holder.split(" ", 3)
    except ValueError:
        # The holder is still writing the file, or the disk is full.
        return False
    return where == _here() and started != _started(process)


class LockFile:
    """Lock that exists as a file: open with O_EXCL succeeds in one process only.

    A thread touches the file until the lock is closed.
    """

    def __init__(self, path: str) -> None:
        """Acquire the lock; wait while another process holds it.

        Args:
            path: the path of the lock file.

        Raises:
            OSError: the file cannot be created.
        """
        self.path = Path(path)
        self.process = os.getpid()
        self.holder = f"{self.process} {_started(self.process)} {_here()} {socket.gethostname()}"
        self._create()
        self.closed = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def _create(self) -> None:
        seen = None
        since = began = time.monotonic()
        while True:
            try:
                descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            except FileExistsError:
                try:
                    now = _text(str(self.path)), self.path.stat().st_mtime_ns
                except FileNotFoundError:
                    continue
                if time.monotonic() - began > PATIENCE:
                    log_holder(str(self.path))
                if now != seen:
                    seen, since = now, time.monotonic()
                if _is_dead(now[0]) or time.monotonic() - since > SILENCE:
                    self._break(now[0])
                else:
                    time.sleep(random.uniform(0.05, 0.2))
            else:
                try:
                    # On a full disk, the file exists but stays empty.
                    with contextlib.suppress(OSError):
                        os.write(descriptor, self.holder.encode())
                finally:
                    os.close(descriptor)
                return

    def _break(self, holder: str) -> None:
        """Remove a dead holder's lock file; restore the file if a new holder has replaced it."""
        aside = self.path.with_name(f"{self.path.name}.{socket.gethostname()}.{self.process}")
        with contextlib.suppress(OSError):
            self.path.rename(aside)
            if _text(str(aside)) != holder:
                os.link(aside, self.path)
        with contextlib.suppress(OSError):
            aside.unlink()

    def _beat(self) -> None:
        while not self.closed.wait(BEAT):
            with contextlib.suppress(OSError):
                os.utime(self.path)

    def close(self) -> None:
        """Release the lock, unless another process broke it or this process is a fork."""
        self.closed.set()
        if self.process == os.getpid() and _text(str(self.path)) in (self.holder, ""):
            with contextlib.suppress(OSError):
                self.path.unlink()


def acquire(path: str) -> IO[str] | LockFile | NoLock:
    """Acquire a record lock on a file; create the file and its directory if needed.

    The kernel releases the lock when its process ends, for any reason, on this host or on another
    host that shares the directory. If the file system refuses it, a lock file replaces it.

    Returns:
        The lock. Closing it releases it.
    """
    while True:
        try:
            Path(path).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            file = Path(path).open("a+")  # noqa: SIM115 (an open file holds the lock)
        except OSError as error:
            return fall_back(path, error)
        try:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EAGAIN):
                    file.close()
                    return fall_back(path, error)
                with report_wait(log_holder, path):
                    fcntl.lockf(file, fcntl.LOCK_EX)
            if not _is_at(file, path):
                # force_unlock removed the file during the wait.
                file.close()
                continue
            write_holder(file)
        except BaseException:
            file.close()
            raise
        return file


def _is_at(file: IO[str], path: str) -> bool:
    """Return whether an open file is still the file at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), Path(path).stat())
    except FileNotFoundError:
        return False


def fall_back(path: str, error: OSError) -> LockFile | NoLock:
    """Acquire a lock file after the kernel refused to lock a path.

    Args:
        path: the path that the kernel did not lock.
        error: the kernel's error.

    Returns:
        The lock, or a NoLock if the lock file cannot be created.
    """
    try:
        lock = LockFile(f"{path}.held")
    except OSError as refused:
        # This process cannot write to the directory at all.
        _logger.debug("%s: no lock: %s", path, refused)
        return NoLock()
    _warn_of_refusal(path, error.strerror)
    return lock


@functools.cache
def _warn_of_refusal(path: str, reason: str) -> None:
    _logger.warning(
        "%s cannot be locked (%s): the file %s.held replaces the lock", path, reason, path
    )
