"""Run test files in parallel, each in its own process; an interrupted run can be resumed.

A test that kills its process or hangs is recorded as failed; its file continues with the next test.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.common import paths, processes, progress
from builder.proof import pytest_events
from builder.proof.pytest_events import Part

PLUGIN = paths.ROOT / "conformance" / "theano_events.py"
# Fails a test in which Theano logs that an optimizer failed.
FAIL_ON_LOGGED = PLUGIN.with_name("fail_on_logged.py")
# Python 2.7 uses nose, because the last pytest for Python 2.7 runs no generator tests.
NOSE = PLUGIN.with_name("nose_events.py")
CONFTEST = paths.RECIPES / "theano" / "conftest.py"
# Seconds after which a test is recorded as hanging.
LIMIT = 1800


@dataclass(frozen=True)
class Manner:
    """The test runner and its settings: pytest's options or nose, THEANO_FLAGS, PYTHONPATH."""

    options: tuple[str, ...] = ()
    flags: str = ""
    path: tuple[Path, ...] = ()
    nose: bool = False


THEANO = Manner(
    # Do not use the installed conftest.py, because stock Theano's tests have no conftest.py.
    # Theano's test classes have these names.
    (
        *("--noconftest", "-p", CONFTEST.stem, "-p", FAIL_ON_LOGGED.stem),
        *("-o", "python_classes=Test* test_* T_* *Test"),
    ),
    # Theano's own continuous integration used these flags.
    "warn.ignore_bug_before=all,on_opt_error=raise,on_shape_error=raise",
    (CONFTEST.parent,),
)
THEANO_OF_2017 = Manner(flags=THEANO.flags, nose=True)


@dataclass(frozen=True)
class Interpreter:
    """A Python with tests in ``site_packages``, and directories for its PYTHONPATH."""

    python: Path
    site_packages: Path
    path: tuple[Path, ...]


@dataclass
class _Running:
    part: Part
    process: processes.Process


class Run:
    """Runs parts below a directory, at most ``jobs`` at once; 0 means the number of CPUs."""

    def __init__(
        self,
        interpreter: Interpreter,
        directory: Path,
        environ: Mapping[str, str],
        jobs: int,
        manner: Manner = THEANO,
    ) -> None:
        self.interpreter = interpreter
        self.directory = directory
        self.environ = environ
        self.jobs = jobs or processes.count_cpus()
        self.manner = manner

    def run(self, parts: Sequence[Part]) -> None:
        """Run the parts that are not complete."""
        pending = [
            part for part in parts if not pytest_events.read_events(self.directory, part).complete
        ]
        self.total, self.done = len(parts), len(parts) - len(pending)
        running: dict[int, _Running] = {}
        try:
            while pending or running:
                for worker in range(self.jobs):
                    if pending and worker not in running:
                        running[worker] = self._start(pending.pop(0), worker)
                for worker, started in list(running.items()):
                    status = self._ended(started)
                    if status is not None:
                        del running[worker]
                        if not self._conclude(started.part, status):
                            pending.insert(0, started.part)
                time.sleep(0.1)
        finally:
            for started in running.values():
                _kill(started.process)

    def _start(self, part: Part, worker: int) -> _Running:
        file = pytest_events.event_file(self.directory, part)
        file.parent.mkdir(parents=True, exist_ok=True)
        # Its modification time is the time of the last event.
        file.touch()
        site = self.interpreter.site_packages
        event_flags = ("--events", file, "--part", f"{part.first}:{part.step}")
        command: list[str | Path] = [
            *(self.interpreter.python, "-m", "pytest", site / part.file),
            *self.manner.options,
            *("-p", PLUGIN.stem, *event_flags),
            *("-p", "no:cacheprovider", "-p", "no:warnings", "--assert=plain", "--tb=short"),
            *("--rootdir", site, "-c", os.devnull),
        ]
        if self.manner.nose:
            command = [self.interpreter.python, NOSE, site, part.file, *event_flags]
        done = len(pytest_events.read_events(self.directory, part).outcomes)
        process = processes.start(
            command,
            env=self._environ(part, worker),
            cwd=self._home(),
            log=self.directory / "logs" / f"{file.stem}-{part.configuration}-{done}.log",
        )
        return _Running(part, process)

    def _home(self) -> Path:
        home = self.directory / "home"
        home.mkdir(exist_ok=True)
        return home

    def _environ(self, part: Part, worker: int) -> dict[str, str]:
        # Each worker has its own compile cache; with one cache they would wait for each other's
        # lock.
        compiledir = f"base_compiledir={self.directory}/compiledir/{worker}"
        flags = [compiledir, self.manner.flags, part.flags]
        return {
            **self.environ,
            "HOME": str(self._home()),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(
                map(str, (PLUGIN.parent, *self.manner.path, *self.interpreter.path))
            ),
            # Write no bytecode into the environment under test.
            "PYTHONPYCACHEPREFIX": str(self.directory / "pycache"),
            "THEANO_FLAGS": ",".join(filter(None, flags)),
        }

    def _ended(self, started: _Running) -> str | None:
        """Describe how a process ended; return None while it runs."""
        status = started.process.poll()
        if status is not None:
            return f"its process ended with {status}"
        age = time.time() - pytest_events.event_file(self.directory, started.part).stat().st_mtime
        if age < LIMIT:
            return None
        _kill(started.process)
        return f"took longer than {LIMIT} s"

    def _conclude(self, part: Part, status: str) -> bool:
        """Record a test that ended its process as failed; return whether the part is complete."""
        events = pytest_events.read_events(self.directory, part)
        if not events.complete:
            reason = status if events.open else f"{status}, before its first test"
            failed = {"id": events.open or part.file, "outcome": "failed"}
            lines: list[dict[str, object]] = [{**failed, "seconds": 0, "reason": reason}]
            if not events.open:
                lines.append({"collected": []})
            with pytest_events.event_file(self.directory, part).open(
                "a", encoding="utf-8"
            ) as stream:
                stream.writelines(json.dumps(line) + "\n" for line in lines)
            events = pytest_events.read_events(self.directory, part)
        if events.complete:
            self.done += 1
            counts = Counter(outcome.outcome for outcome in events.outcomes.values())
            text = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
            progress.say(f"{self.done}/{self.total} {part}: {text or 'no tests'}")
        return events.complete


def _kill(process: processes.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
