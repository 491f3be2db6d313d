"""The lock where the kernel's is refused: a file that one process alone can create."""

from __future__ import annotations

import contextlib
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

# Seconds of waiting that are worth a word.
PATIENCE = 5
# Seconds: how often the holder says that it is there, and after how long of silence it is taken for
# dead. Between them is what a network file system may keep to itself.
BEAT = 10
SILENCE = 120


def sign(file: IO[str]) -> None:
    """Write into a file that the kernel locked who holds it, for those who wait.

    A full disk has no room for it.
    """
    holder = f"process {os.getpid()} on {socket.gethostname()}\n".encode()
    with contextlib.suppress(OSError):
        # One that held it before has mostly been the last one, too.
        if os.pread(file.fileno(), len(holder) + 1, 0) != holder:
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), holder)


@functools.cache
def tell(path: str) -> None:
    """Say, once, who holds the lock that this process waits for."""
    holder = _text(path).strip().removeprefix("process ") or "of unknown number"
    _logger.info("Waiting for the compile lock %s, held by process %s", path, holder)


@contextlib.contextmanager
def waiting(say: Callable[..., None], *arguments: str) -> Iterator[None]:
    """Call `say` if it takes PATIENCE seconds to get a lock."""
    timer = threading.Timer(PATIENCE, say, arguments)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class NoLock:
    """The lock of a directory that cannot be written to: nobody has to wait."""

    def close(self) -> None:
        """Do nothing."""


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _started(process: int | str) -> str:
    """Return when a process was started, or "" if there is none: numbers are used again."""
    return " ".join(_text(f"/proc/{process}/stat").rpartition(")")[2].split()[19:20])


def _here() -> str:
    """Return what is one where processes have the same numbers: hosts and containers differ."""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{_text('/proc/sys/kernel/random/boot_id').strip()}/{namespace}"


def _is_dead(holder: str) -> bool:
    """Tell whether the process is known to have ended that wrote a lock's file."""
    try:
        process, started, where, _ = holder.split(" ", 3)
    except ValueError:
        # It is being written, or its disk is full.
        return False
    return where == _here() and started != _started(process)


class LockFile:
    """A lock that this process holds until it closes it."""

    def __init__(self, path: str) -> None:
        """Wait until nobody else holds the lock.

        Args:
            path: of the file.

        Raises:
            OSError: it cannot be created.
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
                    tell(str(self.path))
                if now != seen:
                    seen, since = now, time.monotonic()
                if _is_dead(now[0]) or time.monotonic() - since > SILENCE:
                    self._take_away(now[0])
                else:
                    time.sleep(random.uniform(0.05, 0.2))
            else:
                try:
                    # A full disk takes the file, and no text.
                    with contextlib.suppress(OSError):
                        os.write(descriptor, self.holder.encode())
                finally:
                    os.close(descriptor)
                return

    def _take_away(self, holder: str) -> None:
        """Remove the lock of one that is dead, but not that of who removed it before."""
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
        """Release the lock, unless it was taken away, or this is a fork of who holds it."""
        self.closed.set()
        if self.process == os.getpid() and _text(str(self.path)) in (self.holder, ""):
            with contextlib.suppress(OSError):
                self.path.unlink()


def fall_back(path: str, error: OSError) -> LockFile | NoLock:
    """Return the lock of a directory whose lock the kernel refused.

    Args:
        path: of the file that was to be locked.
        error: why it was not.
    """
    try:
        lock = LockFile(f"{path}.held")
    except OSError as refused:
        # Who cannot write there puts nothing there.
        _logger.debug("%s: no lock: %s", path, refused)
        return NoLock()
    _tell_of_refusal(path, error.strerror)
    return lock


@functools.cache
def _tell_of_refusal(path: str, reason: str) -> None:
    _logger.warning("%s cannot be locked (%s): the file %s.held is the lock", path, reason, path)
