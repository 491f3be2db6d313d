"""Run the project's own test suites: announce them, show their progress, and summarize them.

Each suite runs in its own pytest process, with the interpreter for which its tests are written. The
pytest plugin ``conformance/theano_events.py`` records the events of its tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.live import Live
from rich.text import Text

from builder import report
from builder.common import paths, processes, progress
from builder.common.errors import CommandFailed
from builder.proof import pytest_events, pytest_results
from builder.proof.linked_packages import PYTEST, link_packages
from builder.proof.pytest_events import Events, Part
from builder.proof.pytest_results import KINDS, Outcome
from builder.proof.pytest_runs import PLUGIN

DIRECTORY = paths.BUILD / "tests"
# pytest's exit codes.
PASSED, FAILED, NOTHING_SELECTED = 0, 1, 5
# pytest's output is printed from the first of these headings on.
HEADING = re.compile(r"^(\x1b\[\d+m)*=+ (ERRORS|FAILURES|warnings summary)", re.MULTILINE)
# Seconds between progress lines without a terminal.
LINE_INTERVAL = 30
# Seconds that the fixtures of an interrupted pytest have to clean up.
CLEANUP_TIMEOUT = 30


@dataclass(frozen=True)
class Suite:
    """The tests in a folder, run by an environment's interpreter or the builder's interpreter."""

    folder: str
    # Seconds on 2 cores.
    expected_seconds: float
    environment: str = ""
    # The requirements of the suite or of some of its tests.
    needs: str = ""
    # The command that provides a missing requirement of the suite; "" if the suite can run.
    absent: str = ""
    # Whether the suite runs at the same time as the preceding suite.
    concurrent: bool = False

    def __str__(self) -> str:
        return f"{self.folder} in {self.environment}" if self.environment else self.folder

    @property
    def part(self) -> Part:
        """The part under which the suite's events are recorded."""
        return Part(self.environment or "builder", "", self.folder, 0, 1)

    @property
    def log(self) -> Path:
        """The file with the output of the suite's pytest."""
        file = pytest_events.get_event_file(DIRECTORY, self.part)
        return DIRECTORY / "logs" / f"{file.stem}-{self.part.configuration}.log"

    @property
    def python(self) -> Path:
        """The interpreter that runs the suite."""
        environment = paths.ENVIRONMENTS / self.environment
        return environment / "bin" / "python" if self.environment else Path(sys.executable)


class Run:
    """A run of suites, as a context manager.

    The constructor prints a table of the suites and their estimated times. :meth:`run` runs suites.
    The end of the block prints a summary.

    Args:
        suites: all suites, also the suites that cannot run.
        select: pytest's -k expression, or "".
        options: pytest's other options that select tests. A suite without a selected test passes.

    Raises:
        CommandFailed: at the end of the block, if a test failed.
    """

    def __init__(self, suites: Sequence[Suite], select: str, *options: str) -> None:
        self.suites = [suite for suite in suites if not suite.absent]
        self.groups: list[list[Suite]] = []
        for suite in self.suites:
            if suite.concurrent and self.groups:
                self.groups[-1].append(suite)
            else:
                self.groups.append([suite])
        self.selection = (*(("-k", select) if select else ()), *options)
        # Links to pytest's packages, for the environments' interpreters.
        self._links = DIRECTORY / "lent"
        self._times = DIRECTORY / "seconds.json"
        self._seconds: dict[Suite, float] = {}
        previous_times = report.read(self._times)
        self._expected_seconds = {
            suite: float(previous_times.get(str(suite), suite.expected_seconds))
            for suite in self.suites
        }
        rows = [
            [str(suite), "not run", f"needs: {suite.absent}"]
            if suite.absent
            else [str(suite), self._format_estimate(self._expected_seconds[suite]), suite.needs]
            for suite in suites
        ]
        progress.print_table(["part", "time", "needs"], rows)
        total = self._format_estimate(self._sum_seconds(self.groups))
        origin = (
            "as in the last run"
            if previous_times.keys() >= set(map(str, self.suites))
            else "on 2 cores"
        )
        progress.say(f"{total} in all, {origin}\n")

    def run(self, *group: Suite) -> None:
        """Run suites at the same time; print the failures and warnings of pytest."""
        began = time.monotonic()
        running = dict[Suite, processes.Process]()
        if any(suite.environment for suite in group):
            self._make_links()
        try:
            for suite in group:
                running[suite] = self._start(suite)
            with _show_line() as show:
                while active := [
                    suite for suite, process in running.items() if process.poll() is None
                ]:
                    elapsed = time.monotonic() - began
                    self._seconds |= dict.fromkeys(active, elapsed)
                    # The last line of the events may be incomplete.
                    with contextlib.suppress(json.JSONDecodeError):
                        show(self._format_line(active, elapsed))
                    time.sleep(0.2)
        finally:
            for process in running.values():
                if process.poll() is None:
                    _interrupt(process.pid, process.poll)
        for suite, process in running.items():
            self._conclude(suite, process.wait())

    def _make_links(self) -> None:
        # Keep the directory after the run. The commands that repeat failed tests use it.
        shutil.rmtree(self._links, ignore_errors=True)
        self._links.mkdir(parents=True)
        link_packages(self._links, *PYTEST)

    def _start(self, suite: Suite) -> processes.Process:
        self._seconds[suite] = 0.0
        file = pytest_events.get_event_file(DIRECTORY, suite.part)
        file.parent.mkdir(parents=True, exist_ok=True)
        # The plugin skips tests that have an outcome in this file.
        file.write_text("")
        environ = {**os.environ, **({"PYTHONPATH": str(self._links)} if suite.environment else {})}
        command = self._make_command(suite, file)
        return processes.start(command, env=environ, cwd=paths.ROOT, log=suite.log)

    def _make_command(self, suite: Suite, file: Path) -> list[str | Path]:
        return [
            *(suite.python, "-m", "pytest", suite.folder),
            *("-q", "-rN", "-o", "verbosity_assertions=2"),
            f"--color={'yes' if progress.console.color_system else 'no'}",
            # The plugin's directory is not on PYTHONPATH, because the processes that tests start
            # would inherit it.
            *("-o", f"pythonpath={shlex.quote(str(PLUGIN.parent))}"),
            *("-p", PLUGIN.stem, "--events", file),
            *self.selection,
        ]

    def _format_line(self, running: Sequence[Suite], elapsed: float) -> str:
        """Format the progress of the running suites, and the time until all suites end.

        Args:
            running: the suites of a group that are running.
            elapsed: the seconds since the group started.
        """
        parts, seconds_left = list[str](), 0.0
        for suite in running:
            events = pytest_events.read_events(DIRECTORY, suite.part)
            done, total = len(events.outcomes.keys() & set(events.collected)), len(events.collected)
            suite_seconds = self._expected_seconds[suite] - elapsed
            if suite_seconds < 0 or 0 < total == done:
                suite_seconds = elapsed / max(done, 1) * (total - done)
            seconds_left = max(seconds_left, suite_seconds)
            failed = len(_select_failed(events))
            parts.append(
                f"{self.suites.index(suite) + 1}/{len(self.suites)} {suite}: "
                + (f"{done} of {total} tests" if total else "collecting")
                + (f", {failed} failed" if failed else "")
            )
        number = next(i for i, group in enumerate(self.groups, 1) if running[0] in group)
        seconds_left += self._sum_seconds(self.groups[number:])
        return f"{'; '.join(parts)}, {self._format_estimate(seconds_left)} left"

    def _sum_seconds(self, groups: Iterable[Sequence[Suite]]) -> float:
        """Sum the expected seconds of groups; a group takes as long as its longest suite."""
        return sum(max(self._expected_seconds[suite] for suite in group) for group in groups)

    def _conclude(self, suite: Suite, status: int) -> None:
        """Print the failures and the counts of a suite that ended, and record its duration.

        Args:
            status: pytest's exit code.
        """
        output = suite.log.read_text("utf-8", "replace")
        passed = status == PASSED or (status == NOTHING_SELECTED and bool(self.selection))
        events = pytest_events.read_events(DIRECTORY, suite.part)
        if not passed and not _select_failed(events):
            failed = {"id": events.open or suite.folder, "outcome": "failed", "seconds": 0}
            with pytest_events.get_event_file(DIRECTORY, suite.part).open(
                "a", encoding="utf-8"
            ) as stream:
                stream.write(json.dumps({**failed, "reason": f"pytest ended with {status}"}) + "\n")
        heading = HEADING.search(output)
        if heading or not passed:
            progress.say(output[heading.start() if heading else 0 :].rstrip())
        if status in (PASSED, FAILED) and not self.selection:
            times = report.read(self._times)
            report.write({**times, str(suite): round(self._seconds[suite], 1)}, self._times)
        progress.say(
            f"{suite}: {_summarize([suite])}, {progress.format_duration(self._seconds[suite])}"
        )

    def _format_estimate(self, seconds: float) -> str:
        # The estimate is for the default tests. -k runs fewer tests; --thorough runs more tests.
        bound = "at most" if self.selection else "about"
        bound = "at least" if "--thorough" in self.selection else bound
        return f"{bound} {progress.format_estimate(seconds)}"

    def _format_command(self, suite: Suite, test: str) -> str:
        """Format the command that repeats a test, for a shell in the checkout."""
        python, links = (os.path.relpath(path, paths.ROOT) for path in (suite.python, self._links))
        variable = f"PYTHONPATH=$PWD/{links} " if suite.environment else ""
        return f"{variable}{shlex.quote(python)} -m pytest {shlex.quote(test)}"

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        ran = list(self._seconds)
        results = pytest_events.collect_results(DIRECTORY, [suite.part for suite in ran])
        progress.say("")
        for reason, count in pytest_results.count_skip_reasons(results.outcomes):
            progress.say(f"{count} skipped: {' '.join(reason.removeprefix('Skipped: ').split())}")
        failed = {
            suite: _select_failed(pytest_events.read_events(DIRECTORY, suite.part)) for suite in ran
        }
        for suite, tests in failed.items():
            for test, outcome in tests.items():
                progress.say(f"failed: {test}: {outcome.reason[:100]}")
                progress.say(f"  {self._format_command(suite, test)}")
        rows = [
            [
                str(suite),
                *re.findall(r"\d+", _summarize([suite])),
                f"{self._seconds[suite] / 60:.1f}",
            ]
            for suite in ran
        ]
        progress.print_table(["part", *KINDS, "minutes"], rows)
        progress.say(_summarize(ran))
        if kind is None and any(failed.values()):
            failed_suites = [f"{suite} ({len(tests)})" for suite, tests in failed.items() if tests]
            raise CommandFailed(f"failed: {', '.join(failed_suites)}")


def _summarize(suites: Sequence[Suite]) -> str:
    counts = pytest_results.count_outcomes(
        pytest_events.collect_results(DIRECTORY, [suite.part for suite in suites]), ()
    )
    return ", ".join(f"{counts[kind]} {kind}" for kind in KINDS)


def _select_failed(events: Events) -> dict[str, Outcome]:
    return {test: row for test, row in events.outcomes.items() if row.outcome == "failed"}


@contextlib.contextmanager
def _show_line() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a line of progress.

    On a terminal, each line replaces the preceding line. Otherwise at most one line is printed per
    LINE_INTERVAL.
    """
    if progress.is_interactive():
        with Live(console=progress.console, auto_refresh=False, transient=True) as live:
            yield lambda line: live.update(
                Text(line, no_wrap=True, overflow="ellipsis"), refresh=True
            )
        return
    last_time = time.monotonic()

    def show(line: str) -> None:
        nonlocal last_time
        if time.monotonic() - last_time >= LINE_INTERVAL:
            progress.say(line)
            last_time = time.monotonic()

    yield show


def _interrupt(group: int, poll: Callable[[], int | None]) -> None:
    """Send SIGINT to pytest, so that its fixtures clean up; kill it after CLEANUP_TIMEOUT seconds.

    Args:
        group: the id of pytest's process group.
        poll: a function that returns pytest's exit status, or None while pytest runs.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGINT)
        for _ in range(CLEANUP_TIMEOUT * 10):
            if poll() is not None:
                return
            time.sleep(0.1)
        os.killpg(group, signal.SIGKILL)
