"""Run test files in parallel, each in its own process; an interrupted run can be resumed.

A test that kills its process or hangs is recorded as failed. A new process continues with the next
test of its file.
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

# The pytest plugin that records the events of tests in a file.
PLUGIN = paths.ROOT / "conformance" / "theano_events.py"
# The pytest plugin that fails a test in which Theano logs that an optimizer failed.
FAIL_ON_LOGGED = PLUGIN.with_name("fail_on_logged.py")
# The program that runs tests with nose. Python 2.7 uses nose, because the last pytest for Python
# 2.7 does not run generator tests.
NOSE = PLUGIN.with_name("nose_events.py")
CONFTEST = paths.RECIPES / "theano" / "conftest.py"
# After this number of seconds without an event, a process is killed and its test counts as failed.
LIMIT = 1800


@dataclass(frozen=True)
class RunnerSettings:
    """The settings of the test runner.

    Attributes:
        options: additional options of pytest.
        flags: THEANO_FLAGS.
        path: additional directories of PYTHONPATH.
        nose: whether to use nose instead of pytest.
    """

    options: tuple[str, ...] = ()
    flags: str = ""
    path: tuple[Path, ...] = ()
    nose: bool = False


# The settings for Theano's own tests.
THEANO = RunnerSettings(
    # Load conftest.py from recipes/ as a plugin. The stacks install a copy of it, but stock Theano
    # does not. The patterns match the names of Theano's test classes.
    (
        *("--noconftest", "-p", CONFTEST.stem, "-p", FAIL_ON_LOGGED.stem),
        *("-o", "python_classes=Test* test_* T_* *Test"),
    ),
    # Theano's own continuous integration used these flags.
    "warn.ignore_bug_before=all,on_opt_error=raise,on_shape_error=raise",
    (CONFTEST.parent,),
)
THEANO_OF_2017 = RunnerSettings(flags=THEANO.flags, nose=True)


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter, the directory ``site_packages`` with the tests, and its PYTHONPATH."""

    python: Path
    site_packages: Path
    path: tuple[Path, ...]


@dataclass
class _Running:
    part: Part
    process: processes.Process


class Run:
    """Runs parts: slices of test files.

    Args:
        interpreter: the Python that runs the tests.
        directory: the directory for events, logs, the home directory and compile caches.
        environ: the environment variables of the tests.
        jobs: the maximum number of parts that run at once; 0 means the number of CPUs.
        settings: the settings of the test runner.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        directory: Path,
        environ: Mapping[str, str],
        jobs: int,
        settings: RunnerSettings = THEANO,
    ) -> None:
        self.interpreter = interpreter
        self.directory = directory
        self.environ = environ
        self.jobs = jobs or processes.count_cpus()
        self.settings = settings

    def run(self, parts: Sequence[Part]) -> None:
        """Run the parts that an earlier, interrupted run has not completed."""
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
                    status = self._describe_end(started)
                    if status is not None:
                        del running[worker]
                        if not self._conclude(started.part, status):
                            pending.insert(0, started.part)
                time.sleep(0.1)
        finally:
            for started in running.values():
                _kill(started.process)

    def _start(self, part: Part, worker: int) -> _Running:
        file = pytest_events.get_event_file(self.directory, part)
        file.parent.mkdir(parents=True, exist_ok=True)
        # _describe_end reads the time of the last event: the file's modification time.
        file.touch()
        site = self.interpreter.site_packages
        event_flags = ("--events", file, "--part", f"{part.first}:{part.step}")
        command: list[str | Path] = [
            *(self.interpreter.python, "-m", "pytest", site / part.file),
            *self.settings.options,
            *("-p", PLUGIN.stem, *event_flags),
            *("-p", "no:cacheprovider", "-p", "no:warnings", "--assert=plain", "--tb=short"),
            *("--rootdir", site, "-c", os.devnull),
        ]
        if self.settings.nose:
            command = [self.interpreter.python, NOSE, site, part.file, *event_flags]
        done = len(pytest_events.read_events(self.directory, part).outcomes)
        process = processes.start(
            command,
            env=self._make_environ(part, worker),
            cwd=self._make_home(),
            log=self.directory / "logs" / f"{file.stem}-{part.configuration}-{done}.log",
        )
        return _Running(part, process)

    def _make_home(self) -> Path:
        home = self.directory / "home"
        home.mkdir(exist_ok=True)
        return home

    def _make_environ(self, part: Part, worker: int) -> dict[str, str]:
        # Each worker has its own compile cache. Workers with a common cache would wait for its
        # lock.
        compiledir = f"base_compiledir={self.directory}/compiledir/{worker}"
        flags = [compiledir, self.settings.flags, part.flags]
        return {
            **self.environ,
            "HOME": str(self._make_home()),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(
                map(str, (PLUGIN.parent, *self.settings.path, *self.interpreter.path))
            ),
            # Write no bytecode into the environment under test.
            "PYTHONPYCACHEPREFIX": str(self.directory / "pycache"),
            "THEANO_FLAGS": ",".join(filter(None, flags)),
        }

    def _describe_end(self, started: _Running) -> str | None:
        """Describe how a process ended; kill it after LIMIT; return None while it runs."""
        status = started.process.poll()
        if status is not None:
            return f"its process ended with {status}"
        age = (
            time.time() - pytest_events.get_event_file(self.directory, started.part).stat().st_mtime
        )
        if age < LIMIT:
            return None
        _kill(started.process)
        return f"took longer than {LIMIT} s"

    def _conclude(self, part: Part, status: str) -> bool:
        """Record the test that was running when the process ended, if any, as failed.

        Args:
            status: the description of the process's end.

        Returns:
            Whether the part is complete.
        """
        events = pytest_events.read_events(self.directory, part)
        if not events.complete:
            reason = status if events.open else f"{status}, before its first test"
            failed = {"id": events.open or part.file, "outcome": "failed"}
            lines: list[dict[str, object]] = [{**failed, "seconds": 0, "reason": reason}]
            if not events.open:
                lines.append({"collected": []})
            with pytest_events.get_event_file(self.directory, part).open(
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
