"""build/lock-of-the-kernel.patch locks the compiledir with a kernel lock.

Without the patch, the lock is a directory. It outlives a process that was killed on another host,
and it outlives an error. If a file system refuses kernel locks, the patch uses a lock file.
"""

import errno
import functools
import os
import socket
import threading
import time

import pytest
from theano.gof import compilelock, lock_files

# Holds the lock under the name of another host, so that waiting processes cannot check whether the
# holder is alive.
HOLD = """
import socket, sys
socket.gethostname = lambda: "elsewhere"
from theano.gof.compilelock import get_lock
get_lock()
print("locked", flush=True)
sys.stdin.read()
"""
# Adds 1 to the number in a file 20 times. The number is correct only if the lock works.
COUNT = """
import pathlib
from theano.gof.compilelock import get_lock, release_lock
for _ in range(20):
    get_lock()
    file = pathlib.Path({file!r})
    file.write_text(str(int(file.read_text()) + 1))
    release_lock()
"""
WAIT = """
from theano.gof.compilelock import get_lock
print("waits", flush=True)
get_lock()
print("locked")
"""
COMPILE = """
import numpy as np, theano, theano.tensor as tt
x = tt.dvector()
ops = [tt.exp, tt.sin, lambda x: x + {number}]
print([float(theano.function([x], op(x))([0.0])[0]) for op in ops])
"""


@pytest.fixture
def start(start_python, tmp_path):
    """Return a function that starts code in a new interpreter; all of them share a compiledir."""
    return functools.partial(start_python, flags=f"base_compiledir={tmp_path}/compiled")


def test_a_killed_process_releases_the_lock(start):
    holder = start(HOLD)
    assert holder.stdout.readline() == "locked\n"
    waiting = start(COMPILE.format(number=1))
    assert "held by process" in waiting.stderr.readline()
    holder.kill()
    stdout, stderr = waiting.communicate(timeout=100)
    assert stdout == "[1.0, 0.0, 1.0]\n", stderr


def test_the_holder_is_written_only_if_the_file_names_another(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    with path.open("a+") as file:
        for old_text in ("", "process 1 on another host\n", f"process {os.getpid()}"):
            path.write_text(old_text)
            lock_files.write_holder(file)
            text = path.read_text()
            assert text == f"process {os.getpid()} on {socket.gethostname()}\n"
        monkeypatch.setattr(os, "ftruncate", lambda *_: pytest.fail("written again"))
        lock_files.write_holder(file)
        path.write_text(text + "more")
        with pytest.raises(pytest.fail.Exception):
            lock_files.write_holder(file)


def test_one_process_at_a_time_holds_the_lock(start, tmp_path):
    file = tmp_path / "count"
    file.write_text("0")
    processes = [start(COUNT.format(file=str(file))) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert file.read_text() == "60"


def test_eight_processes_can_compile_at_the_same_time(start):
    processes = [start(COMPILE.format(number=number)) for number in range(8)]
    for number, process in enumerate(processes):
        stdout, stderr = process.communicate()
        assert stdout == f"[1.0, 0.0, {number}.0]\n", stderr
        assert "WARNING" not in stderr


def test_an_error_releases_the_lock():
    before = compilelock.get_lock.n_lock
    with pytest.raises(ZeroDivisionError), compilelock.lock_ctx(keep_lock=True):
        _ = 1 / 0
    assert compilelock.get_lock.n_lock == before


# Makes the kernel refuse locks with an error.
REFUSED = """
import errno, fcntl, os
def refuse(*_):
    raise OSError(errno.{error}, os.strerror(errno.{error}))
fcntl.lockf = refuse
"""
ERRORS = ["ENOSYS", "ENOLCK", "EOPNOTSUPP"]


@pytest.fixture
def refused(monkeypatch, tmp_path):
    """Make the kernel refuse locks; return the path of a directory to lock."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock_files.fcntl, "lockf", refuse)
    return tmp_path / "lock_dir"


def test_a_lock_file_replaces_a_refused_lock(refused):
    with compilelock.lock_ctx(str(refused)):
        held = refused / "lock.held"
        assert held.read_text().startswith(f"{os.getpid()} ")
        # A forked process does not hold the lock, so it must not remove the file.
        child = os.fork()
        if not child:
            compilelock.release_lock()
            os._exit(0)
        os.waitpid(child, 0)
        assert held.exists()
    assert not held.exists()


@pytest.mark.parametrize("error", ERRORS)
def test_one_process_at_a_time_holds_a_lock_file(start, tmp_path, error):
    file = tmp_path / "count"
    file.write_text("0")
    code = REFUSED.format(error=error) + COUNT.format(file=str(file))
    processes = [start(code) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert file.read_text() == "60"


def test_eight_processes_can_compile_at_the_same_time_with_lock_files(start):
    refused = REFUSED.format(error="ENOSYS")
    processes = [start(refused + COMPILE.format(number=number)) for number in range(8)]
    reports = 0
    for number, process in enumerate(processes):
        stdout, stderr = process.communicate()
        assert stdout == f"[1.0, 0.0, {number}.0]\n", stderr
        # A process that finds all modules in the cache takes no lock.
        refusals = stderr.count("cannot be locked (Function not implemented)")
        assert stderr.count("WARNING") == refusals <= 1
        reports += refusals
    assert reports


def test_a_killed_process_releases_the_lock_file(start):
    refused = REFUSED.format(error="ENOSYS")
    holder = start(refused + HOLD)
    assert holder.stdout.readline() == "locked\n"
    waiting = start(refused + COMPILE.format(number=1))
    assert "held by process" in waiting.stderr.readline()
    holder.kill()
    holder.wait()
    stdout, stderr = waiting.communicate(timeout=100)
    assert stdout == "[1.0, 0.0, 1.0]\n", stderr


def test_heartbeats_of_another_host_keep_the_lock(refused, monkeypatch):
    """A process acquires the lock SILENCE seconds after the holder touched the file last."""
    monkeypatch.setattr(lock_files, "BEAT", 0.1)
    monkeypatch.setattr(lock_files, "SILENCE", 1)
    refused.mkdir()
    held = refused / "lock.held"
    held.write_text("1 1 elsewhere/ host")
    beats = []

    def beat():
        while len(beats) < 20:
            beats.append(time.monotonic())
            os.utime(held)
            time.sleep(0.1)

    thread = threading.Thread(target=beat)
    thread.start()
    with compilelock.lock_ctx(str(refused)):
        assert len(beats) == 20
        assert time.monotonic() - beats[-1] > 0.9
    thread.join()


def test_a_reused_process_number_does_not_hold_the_lock(refused):
    refused.mkdir()
    dead_holder = f"{os.getpid()} 1 {lock_files._identify_namespace()} host"
    (refused / "lock.held").write_text(dead_holder)
    with compilelock.lock_ctx(str(refused)):
        assert (refused / "lock.held").read_text() != dead_holder
    assert [file.name for file in refused.iterdir()] == ["lock"]


def test_one_message_names_the_holder_and_refused_locks(refused, monkeypatch, caplog):
    monkeypatch.setattr(lock_files, "PATIENCE", 0.2)
    lock = refused / "lock"
    refused.mkdir()
    for _ in range(2):
        (refused / "lock.held").write_text("1 1 elsewhere/ host")
        release = threading.Timer(1, (refused / "lock.held").unlink)
        release.start()
        with compilelock.lock_ctx(str(refused)):
            release.join()
    assert [record.getMessage() for record in caplog.records] == [
        f"Waiting for the compile lock {lock}.held, held by process 1 1 elsewhere/ host",
        f"{lock} cannot be locked (No locks available): the file {lock}.held replaces the lock",
    ]


def test_short_waits_are_not_logged(start):
    first = start(HOLD)
    assert first.stdout.readline() == "locked\n"
    waiting = start(WAIT)
    assert waiting.stdout.readline() == "waits\n"
    time.sleep(1)
    first.kill()
    assert waiting.communicate() == ("locked\n", "")


@pytest.mark.parametrize("refused", ["", REFUSED.format(error="ENOSYS")])
def test_force_unlock_releases_the_lock(start, refused):
    """Another process can compile after force_unlock, although the holder is still alive."""
    holder = start(refused + HOLD)
    assert holder.stdout.readline() == "locked\n"
    unlocking = start("from theano.gof.compilelock import force_unlock; force_unlock()")
    assert unlocking.wait() == 0
    assert start(refused + COMPILE.format(number=2)).wait() == 0
    assert holder.poll() is None
