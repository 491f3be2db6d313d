"""Run the checks, each in a process of its own, and collect their records."""

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

# Set over the user's own flags: the checks need them, and they say nothing of the environment.
FLAGS = "device=cpu,floatX=float64,mode=FAST_RUN,profile=False,compute_test_value=off"
LAST_LINES = 15


def select(names: Sequence[str]) -> tuple[Check, ...]:
    """Return the checks of these names, all for none; raises ValueError naming the known ones."""
    known = {check.name: check for check in CHECKS}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"unknown check {', '.join(unknown)}; the checks are {', '.join(known)}")
    return tuple(check for check in CHECKS if not names or check.name in names)


def run(
    checks: Sequence[Check], full: bool, compiledir: Path, device: str = ""
) -> Iterator[Record]:
    """Run the checks and yield the record of each as it ends.

    All share compiledir, so that what is compiled once is there for the next.
    """
    for check in checks:
        yield run_check(check, full, compiledir, device)


def run_check(check: Check, full: bool, compiledir: Path, device: str = "") -> Record:
    """Run one check in a process of its own; a crash or a hang is a failure like another."""
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
                    env=environment(check, compiledir),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=limit,
                ).returncode
        except subprocess.TimeoutExpired:
            message = f"it did not end within {limit} s"
        else:
            if code == 0:
                return Record(**json.loads(answer.read_text()))
            message = f"its process {ending(code)}"
        lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
    seconds = time.perf_counter() - started
    return Record(check.name, "failed", seconds, message, details=tuple(lines))


def environment(check: Check, compiledir: Path) -> dict[str, str]:
    """Return the environment of a check's process: the user's, with the flags checks need."""
    return {
        **os.environ,
        # mpi4py, where it is installed, takes the machine's MPI as soon as Theano is imported.
        "MPI4PY_LIBMPI": os.devnull,
        "THEANO_FLAGS": theano_flags(FLAGS, check.flags, f"compiledir={compiledir}"),
        # A crash then says where in Python it happened.
        "PYTHONFAULTHANDLER": "1",
    }


def theano_flags(*ours: str) -> str:
    """Return THEANO_FLAGS with ours behind the user's own, so that ours win."""
    return ",".join(filter(None, (os.environ.get("THEANO_FLAGS"), *ours)))


def ending(code: int) -> str:
    """Say how a process with this return code of subprocess ended."""
    if code >= 0:
        return f"ended with exit status {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def verified(records: Sequence[Record]) -> bool:
    """Tell whether something was proved and nothing failed: skipped checks prove nothing."""
    statuses = {record.status for record in records}
    return "failed" not in statuses and "passed" in statuses
