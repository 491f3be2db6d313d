"""Run each check in its own process, and collect the records."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from theano_fast.checks import CHECKS, Check
from theano_fast.checks.result import Record

# The checks need these flags, which override the user's. Overriding them hides no defect of the
# environment.
FLAGS = "device=cpu,floatX=float64,mode=FAST_RUN,profile=False,compute_test_value=off"
# The record of a crashed check contains this number of last lines of its output.
LAST_LINES = 15


def select(names: Sequence[str], without: Sequence[str] = ()) -> tuple[Check, ...]:
    """Return the checks with these names (all checks if there are no names), except ``without``.

    Raises:
        ValueError: a name is unknown; the message lists all checks.
    """
    valid = [check.name for check in CHECKS]
    if unknown := [name for name in (*names, *without) if name not in valid]:
        raise ValueError(f"unknown check {', '.join(unknown)}; the checks are {', '.join(valid)}")
    return tuple(
        check
        for check in CHECKS
        if (not names or check.name in names) and check.name not in without
    )


def run(
    checks: Sequence[Check], full: bool, compiledir: Path, device: str = ""
) -> Iterator[Record]:
    """Run checks, and yield the record of each check when the check ends.

    The checks share ``compiledir``, so that Theano compiles each module once.
    """
    for check in checks:
        yield run_check(check, full, compiledir, device)


def run_check(check: Check, full: bool, compiledir: Path, device: str = "") -> Record:
    """Run one check in its own process; a crash or a timeout is a failed check."""
    limit = check.full_limit if full else check.limit
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="theano-fast-") as folder:
        answer, log = Path(folder, "answer.json"), Path(folder, "log")
        command = [sys.executable, "-P", "-m", "theano_fast.checks", check.name, str(answer)]
        command += ["--device", device, *(["--full"] if full else [])]
        try:
            with log.open("w") as output:
                code = subprocess.run(
                    command,
                    check=False,
                    env=make_environment(check, compiledir),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=limit,
                ).returncode
        except subprocess.TimeoutExpired:
            message = f"the check did not end within {limit} s"
        else:
            if code == 0:
                return Record(**json.loads(answer.read_text()))
            message = f"the check's process {describe_exit(code)}"
        lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
    seconds = time.perf_counter() - started
    return Record(check.name, "failed", seconds, message, details=tuple(lines))


def make_environment(check: Check, compiledir: Path) -> dict[str, str]:
    """Return the environment variables of a check's process: the user's and the check's."""
    return {
        **os.environ,
        # If mpi4py is installed, Theano imports it. Do not let mpi4py load the host's MPI.
        "MPI4PY_LIBMPI": os.devnull,
        "THEANO_FLAGS": append_flags(FLAGS, check.flags, f"compiledir={compiledir}"),
        # Print a stack trace after a crash.
        "PYTHONFAULTHANDLER": "1",
    }


def append_flags(*flags: str) -> str:
    """Append flags to the user's THEANO_FLAGS; in Theano, the last value of a flag wins."""
    return ",".join(filter(None, (os.environ.get("THEANO_FLAGS"), *flags)))


def describe_exit(code: int) -> str:
    """Describe how a process ended.

    Args:
        code: the return code of subprocess, negative after a signal.
    """
    if code >= 0:
        return f"ended with exit status {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def is_verified(records: Sequence[Record]) -> bool:
    """Return whether at least one check passed and no check failed."""
    statuses = {record.status for record in records}
    return "failed" not in statuses and "passed" in statuses
