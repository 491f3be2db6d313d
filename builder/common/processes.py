"""Run subprocesses; capture their output, write it to a log or the terminal, or read its lines."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.common.errors import CommandFailed

# The user's environment variables that would change the behaviour of a built environment.
FOREIGN_VARIABLES = (
    "THEANO_FLAGS",
    "THEANORC",
    "PYTHONPATH",
    "PYTHONHOME",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
)
# Environment variables with which OpenBLAS, MKL or NumPy use kernels for another processor.
KERNEL_VARIABLES = (
    *("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"),
    *("MKL_ENABLE_INSTRUCTIONS", "NPY_DISABLE_CPU_FEATURES"),
)
# Number of output lines in the message of a failed command.
TAIL_LINES = 20
# Seconds between SIGINT and SIGKILL for a logged command when this process is interrupted.
GRACE_SECONDS = 10

Process = subprocess.Popen[bytes]


def count_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def clean_environ() -> dict[str, str]:
    """Return this process's environment variables without FOREIGN_VARIABLES."""
    return {key: value for key, value in os.environ.items() if key not in FOREIGN_VARIABLES}


def select_own_kernels(environ: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables without KERNEL_VARIABLES.

    Libraries then use the kernels for the processor on which they run.
    """
    return {name: value for name, value in environ.items() if name not in KERNEL_VARIABLES}


@dataclass(frozen=True)
class Finished:
    """The exit status of a command, and its merged stdout and stderr."""

    status: int
    output: str


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    check: bool = True,
) -> Finished:
    """Run a command and capture its stdout and stderr, merged.

    Raises:
        CommandFailed: the command cannot be started, or ``check`` is true and the exit status is
            not 0.
    """
    command = [os.fspath(part) for part in argv]
    try:
        completed = subprocess.run(
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
    if check and completed.returncode != 0:
        tail = "\n".join(completed.stdout.splitlines()[-TAIL_LINES:])
        raise CommandFailed(f"{' '.join(command)}: exit status {completed.returncode}\n{tail}")
    return Finished(completed.returncode, completed.stdout)


def run_on_terminal(
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


def run_logged(argv: Sequence[str | os.PathLike[str]], *, env: Mapping[str, str], log: Path) -> int:
    """Run a command, write its output to ``log``, and return its exit status.

    If this process is interrupted, stop the command and its children: send SIGINT, wait for the
    command for at most GRACE_SECONDS, and send SIGKILL.
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
                process.wait(GRACE_SECONDS)
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def start(
    argv: Sequence[str | os.PathLike[str]], *, env: Mapping[str, str], cwd: Path, log: Path
) -> Process:
    """Start a command in a new session and write its output to ``log``; do not wait for it.

    The command's stdin is a pipe to which this process writes nothing. The pipe closes when this
    process ends for any reason, so a command that reads its stdin can end too.
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


def lower_priority(session: int, niceness: int) -> None:
    """Set the niceness of a session to the niceness of this process plus ``niceness``, at most 19.

    Ignore errors, such as a missing permission. Only root can raise the priority again.

    Args:
        session: the ID of the session, which is the process ID of a command of ``start``.
    """
    nice = min(os.getpriority(os.PRIO_PROCESS, 0) + niceness, 19)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PGRP, session, nice)
    with contextlib.suppress(OSError):
        # With autogroup scheduling, Debian's default, the kernel divides CPU time among sessions.
        # The niceness of a process then counts within its session only. Therefore set the niceness
        # of the session too.
        Path("/proc", str(session), "autogroup").write_text(str(nice))


def measure_cpu_seconds(sessions: Iterable[int]) -> dict[int, float]:
    """Measure the CPU seconds that each session has used; return them by session ID.

    Include processes that have ended, if their parents still run.
    """
    ticks_per_second = os.sysconf("SC_CLK_TCK")
    seconds = dict.fromkeys(sessions, 0.0)
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The second field of proc_pid_stat(5) is a program's name in parentheses, which may
            # contain spaces and parentheses. Split the line after it: fields[0] is the third field.
            fields = file.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        if (session := int(fields[3])) in seconds:
            # utime, stime, cutime and cstime.
            seconds[session] += sum(map(int, fields[11:15])) / ticks_per_second
    return seconds


class Conversation:
    """A running command that answers each line on stdin with one line on stdout.

    Its stderr goes to ``stderr.log`` in ``cwd``. As a context, kill the command at the end.

    Raises:
        CommandFailed: the command could not be started.
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
            CommandFailed: the command ended instead of answering.
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
            lines = self._log.read_text("utf-8", "replace").splitlines()
            tail = "\n".join(lines[-TAIL_LINES:])
            raise CommandFailed(f"{self._name}: exit status {self._process.wait()}\n{tail}")
        return answer.rstrip("\n")

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
