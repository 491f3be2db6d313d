"""Kernel locks on files, with lock files as the fallback for file systems without kernel locks."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

_logger = logging.getLogger("theano.gof.compilelock")

# A process logs a message if it waits for a lock for more than PATIENCE seconds.
PATIENCE = 5
# The holder of a lock file touches the file every BEAT seconds. After SILENCE seconds without a
# touch, other processes consider the holder dead. SILENCE is much longer than BEAT, because a
# network file system may delay a touch.
BEAT = 10
SILENCE = 120


def write_holder(file: IO[str]) -> None:
    """Write PID and host into a file that this process has locked; waiting processes log them.

    Ignore errors, such as a full disk.
    """
    holder = f"process {os.getpid()} on {os.uname().nodename}\n".encode()
    with contextlib.suppress(OSError):
        # Do not write if this process was also the previous holder, which is the usual case.
        if os.pread(file.fileno(), len(holder) + 1, 0) != holder:
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), holder)


@functools.cache
def log_holder(path: str) -> None:
    """Log the PID and host of the process that holds the lock on a file, once per path."""
    holder = _read_text(path).strip().removeprefix("process ") or "with unknown PID"
    _logger.info("Waiting for the compile lock %s, held by process %s", path, holder)


@contextlib.contextmanager
def report_wait(log: Callable[..., None], *arguments: str) -> Iterator[None]:
    """Call `log` in a thread if the block, which acquires a lock, exceeds PATIENCE seconds."""
    timer = threading.Timer(PATIENCE, log, arguments)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def open_lock(path: Path) -> int:
    """Open a lock file; create it and its directory if needed. Return the file's descriptor.

    Raises:
        OSError: the file cannot be opened or created.
    """
    path.parent.mkdir(0o755, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)


def try_lock(file: int | IO[str], kind: int = fcntl.LOCK_EX, *byte_range: int) -> bool:
    """Lock a file, or bytes of it, if no other process holds the lock; return whether it is locked.

    Args:
        file: the open file or its descriptor.
        kind: fcntl.LOCK_SH for a shared lock, or fcntl.LOCK_EX for an exclusive lock.
        byte_range: the number of bytes to lock, and the offset of the first byte; by default, all
            bytes.

    Raises:
        OSError: the file system supports no locks.
    """
    try:
        fcntl.lockf(file, kind | fcntl.LOCK_NB, *byte_range)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise
        return False
    return True


class NoLock:
    """Stand-in for a lock in a directory to which this process cannot write."""

    def close(self) -> None:
        """Do nothing."""


def _read_text(path: str) -> str:
    """Return the content of a file, or "" if it cannot be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _read_start_time(process: int | str) -> str:
    """Return the start time of a process, or "" if there is no such process.

    The start time is a number of clock ticks since boot. It distinguishes a process from a later
    process with the same PID.
    """
    return " ".join(_read_text(f"/proc/{process}/stat").rpartition(")")[2].split()[19:20])


def _identify_namespace() -> str:
    """Return an identifier of the host's current boot and of this process's PID namespace.

    A PID is unique within one PID namespace of one boot.
    """
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{_read_text('/proc/sys/kernel/random/boot_id').strip()}/{namespace}"


def _is_dead(holder: str) -> bool:
    """Return whether the process that wrote a lock file has certainly ended.

    Args:
        holder: the content of the lock file, see LockFile.holder.
    """
    try:
        process, start_time, namespace, _ = holder.split(" ", 3)
    except ValueError:
        # The holder is still writing the file, or the disk is full.
        return False
    return namespace == _identify_namespace() and start_time != _read_start_time(process)


class LockFile:
    """Lock held by the process that created a file: open with O_EXCL succeeds in one process only.

    A thread touches the file until the lock is closed.

    Attributes:
        path: the path of the lock file.
        process: the PID of the process that created the lock.
        holder: the content of the lock file: PID, start time, namespace, host name.
        closed: an event that ends the thread.
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
        start_time = _read_start_time(self.process)
        host = os.uname().nodename
        self.holder = f"{self.process} {start_time} {_identify_namespace()} {host}"
        self._create()
        self.closed = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def _create(self) -> None:
        """Create the file; wait for the holder's release, or remove the file of a dead holder."""
        last_state = None
        unchanged_since = wait_start = time.monotonic()
        while True:
            try:
                descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            except FileExistsError:
                try:
                    state = _read_text(str(self.path)), self.path.stat().st_mtime_ns
                except FileNotFoundError:
                    continue
                if time.monotonic() - wait_start > PATIENCE:
                    log_holder(str(self.path))
                if state != last_state:
                    last_state, unchanged_since = state, time.monotonic()
                if _is_dead(state[0]) or time.monotonic() - unchanged_since > SILENCE:
                    self._break(state[0])
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
        """Remove a dead holder's lock file; restore the file if a new holder has replaced it.

        The file is renamed before its content is compared, so that no other process can replace it
        between the comparison and the removal.

        Args:
            holder: the content of the dead holder's file.
        """
        renamed = self.path.with_name(f"{self.path.name}.{os.uname().nodename}.{self.process}")
        with contextlib.suppress(OSError):
            self.path.rename(renamed)
            if _read_text(str(renamed)) != holder:
                os.link(renamed, self.path)
        with contextlib.suppress(OSError):
            renamed.unlink()

    def _beat(self) -> None:
        """Touch the file every BEAT seconds until the lock is closed."""
        while not self.closed.wait(BEAT):
            with contextlib.suppress(OSError):
                os.utime(self.path)

    def close(self) -> None:
        """Remove the file, unless this process is a fork or another process has replaced it."""
        self.closed.set()
        if self.process == os.getpid() and _read_text(str(self.path)) in (self.holder, ""):
            with contextlib.suppress(OSError):
                self.path.unlink()


def acquire(path: str) -> IO[str] | LockFile | NoLock:
    """Acquire a record lock on a file; create the file and its directory if needed.

    The kernel releases the lock when the process ends for any reason. The lock also excludes
    processes on other hosts that share the directory. If the file cannot be created or locked, a
    lock file is the fallback.

    Returns:
        The lock; its method close() releases it.
    """
    while True:
        try:
            Path(path).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            file = Path(path).open("a+")  # noqa: SIM115 (the open file holds the lock)
        except OSError as error:
            return fall_back(path, error)
        try:
            try:
                is_locked = try_lock(file)
            except OSError as error:
                file.close()
                return fall_back(path, error)
            if not is_locked:
                with report_wait(log_holder, path):
                    fcntl.lockf(file, fcntl.LOCK_EX)
            if not _is_at(file, path):
                # compilelock.force_unlock removed the file during the wait: lock the new file.
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
    """Create the lock file `path`.held, because the file at `path` cannot be locked.

    Args:
        path: the path of the file.
        error: the reason: the directory or the file could not be created, or the kernel refused the
            lock.

    Returns:
        The lock, or a NoLock if the lock file cannot be created.
    """
    try:
        lock = LockFile(f"{path}.held")
    except OSError as refused:
        # This process cannot create files in the directory. So it cannot change the cache that the
        # lock protects, and needs no lock.
        _logger.debug("%s: no lock: %s", path, refused)
        return NoLock()
    _warn_of_refusal(path, error.strerror)
    return lock


@functools.cache
def _warn_of_refusal(path: str, reason: str) -> None:
    """Warn that a lock file replaces a kernel lock, once per path and reason."""
    _logger.warning(
        "%s cannot be locked (%s): the file %s.held replaces the lock", path, reason, path
    )
