"""The only door to subprocesses."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.common.errors import CommandFailed

# What the user's shell may hold that would change what an environment does.
FOREIGN = ("THEANO_FLAGS", "THEANORC", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LD_PRELOAD")


def cpus() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0))


def clean_environ() -> dict[str, str]:
    """The environment variables of this process without FOREIGN ones."""
    return {key: value for key, value in os.environ.items() if key not in FOREIGN}


@dataclass(frozen=True)
class Finished:
    """A command that ended."""

    status: int
    output: str


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    check: bool = True,
) -> Finished:
    """Run a command, its stdout and stderr merged and returned.

    Raises:
        CommandFailed: it could not be started, or exited non-zero while ``check`` is set.
    """
    command = [os.fspath(part) for part in argv]
    try:
        done = subprocess.run(
            command,
            check=False,
            env=None if env is None else dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise CommandFailed(f"{command[0]}: cannot be started: {error}") from error
    if check and done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-20:])
        raise CommandFailed(f"{' '.join(command)}: exit status {done.returncode}\n{tail}")
    return Finished(done.returncode, done.stdout)


def show(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> int:
    """Run a command on the caller's terminal and return its exit status."""
    command = [os.fspath(part) for part in argv]
    return subprocess.run(
        command, check=False, env=None if env is None else dict(env), cwd=cwd
    ).returncode


# Seconds that a command gets to end what it began, when this process is interrupted.
PATIENCE = 10


def record(argv: Sequence[str | os.PathLike[str]], *, env: Mapping[str, str], log: Path) -> int:
    """Run a command, its output going to ``log``, and return its exit status.

    All that it started ends with it where this process is interrupted, by a terminal or not.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [os.fspath(part) for part in argv],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return process.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


# What is started, and its end waited for.
Process = subprocess.Popen[bytes]


def start(
    argv: Sequence[str | os.PathLike[str]], *, env: Mapping[str, str], cwd: Path, log: Path
) -> Process:
    """Start a command in a session of its own, its output going to ``log``.

    Its standard input is a pipe that nobody writes to: the end of it tells the
    child that this process is gone, however it went.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        return subprocess.Popen(
            [os.fspath(part) for part in argv],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def give_way(session: int, niceness: int) -> None:
    """Let what runs in a session give way to others by ``niceness``, as far as that is allowed.

    Only root can take it back.
    """
    nice = min(os.getpriority(os.PRIO_PROCESS, 0) + niceness, 19)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PGRP, session, nice)
    with contextlib.suppress(OSError):
        # Where the kernel shares the processor between sessions first, as Debian's does, this alone
        # says how: the niceness of processes then counts within their session only.
        Path("/proc", str(session), "autogroup").write_text(str(nice))


def cpu_seconds(sessions: Iterable[int]) -> dict[int, float]:
    """The CPU seconds that each session took so far, those of its processes that ended too."""
    tick = os.sysconf("SC_CLK_TCK")
    found = dict.fromkeys(sessions, 0.0)
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The second field, a name in parentheses, may hold anything.
            fields = file.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        if (session := int(fields[3])) in found:
            # Of itself and of the children it waited for, as user and in the kernel.
            found[session] += sum(map(int, fields[11:15])) / tick
    return found


class Conversation:
    """A command that answers each line on its standard input by one on its standard output.

    Raises:
        CommandFailed: it could not be started.
    """

    def __init__(
        self, argv: Sequence[str | os.PathLike[str]], *, env: Mapping[str, str], cwd: Path
    ) -> None:
        command = [os.fspath(part) for part in argv]
        self._name = " ".join(command)
        self._log = cwd / "stderr.log"
        with self._log.open("wb") as stderr:
            try:
                self._process = subprocess.Popen(
                    command,
                    env=dict(env),
                    cwd=cwd,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    text=True,
                )
            except OSError as error:
                raise CommandFailed(f"{command[0]}: cannot be started: {error}") from error

    def ask(self, line: str) -> str:
        """Send a line and return the answer.

        Raises:
            CommandFailed: the command ended instead.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            tail = "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-20:])
            raise CommandFailed(f"{self._name}: exit status {self._process.wait()}\n{tail}")
        return answer.rstrip("\n")

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
