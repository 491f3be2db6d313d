"""The project's own tests: what will run, how it goes, and how it ended.

Each suite is a pytest in the interpreter that its tests are for, with the plugin that tells what
happens to Theano's own tests.
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
from builder.proof.lent_packages import PYTEST, lend
from builder.proof.pytest_events import Events, Part
from builder.proof.pytest_results import KINDS, Outcome
from builder.proof.pytest_runs import PLUGIN

DIRECTORY = paths.BUILD / "tests"
# pytest's exit codes.
PASSED, FAILED, NOTHING_SELECTED = 0, 1, 5
# What is shown of pytest's output begins with one of these.
HEADING = re.compile(r"^(\x1b\[\d+m)*=+ (ERRORS|FAILURES|warnings summary)", re.MULTILINE)
# Seconds between plain lines, and those that fixtures get to end what they began.
PACE, PATIENCE = 30, 30


@dataclass(frozen=True)
class Suite:
    """The tests in a folder, run by an environment's interpreter, or else by the builder's."""

    folder: str
    # Seconds that it took on 2 cores.
    about: float
    environment: str = ""
    # What it cannot run without, in part or as a whole.
    needs: str = ""
    # What is to be done before it can run.
    absent: str = ""
    # Whether it runs while the one before it does.
    beside: bool = False

    def __str__(self) -> str:
        return f"{self.folder} in {self.environment}" if self.environment else self.folder

    @property
    def part(self) -> Part:
        """What its events are written down as."""
        return Part(self.environment or "builder", "", self.folder, 0, 1)

    @property
    def log(self) -> Path:
        """Where what its pytest prints goes."""
        file = pytest_events.place(DIRECTORY, self.part)
        return DIRECTORY / "logs" / f"{file.stem}-{self.part.configuration}.log"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        environment = paths.ENVIRONMENTS / self.environment
        return environment / "bin" / "python" if self.environment else Path(sys.executable)


class Run:
    """Tells what it will run; ``run`` runs groups of it in a block, whose end tells how it went.

    Args:
        select: pytest's -k expression; a suite in which it selects nothing passes.

    Raises:
        CommandFailed: at the end of the block: a test failed.
    """

    def __init__(self, suites: Sequence[Suite], select: str) -> None:
        self.suites = [suite for suite in suites if not suite.absent]
        self.groups: list[list[Suite]] = []
        for suite in self.suites:
            if suite.beside and self.groups:
                self.groups[-1].append(suite)
            else:
                self.groups.append([suite])
        self.select = select
        self._lent = DIRECTORY / "lent"
        self._times = DIRECTORY / "seconds.json"
        self._took: dict[Suite, float] = {}
        known = report.read(self._times)
        self._about = {suite: float(known.get(str(suite), suite.about)) for suite in self.suites}
        rows = [
            [str(suite), "not run", f"first: {suite.absent}"]
            if suite.absent
            else [str(suite), self._estimate(self._about[suite]), suite.needs]
            for suite in suites
        ]
        progress.table(["part", "time", "needs"], rows)
        total = self._estimate(self._longest(self.groups))
        origin = (
            "as the last time here" if known.keys() >= set(map(str, self.suites)) else "on 2 cores"
        )
        progress.say(f"{total} in all, {origin}\n")

    def run(self, *group: Suite) -> None:
        """Run suites at once, and show what pytest says of failures and warnings."""
        began = time.monotonic()
        running = dict[Suite, processes.Process]()
        try:
            for suite in group:
                running[suite] = self._start(suite)
            with _shown() as show:
                while left := [suite for suite, each in running.items() if each.poll() is None]:
                    elapsed = time.monotonic() - began
                    self._took |= dict.fromkeys(left, elapsed)
                    # A line that is being written may be read in part.
                    with contextlib.suppress(json.JSONDecodeError):
                        show(self._line(left, elapsed))
                    time.sleep(0.2)
        finally:
            for each in running.values():
                if each.poll() is None:
                    _end(each.pid, each.poll)
        for suite, each in running.items():
            self._conclude(suite, each.wait())

    def _start(self, suite: Suite) -> processes.Process:
        self._took[suite] = 0.0
        file = pytest_events.place(DIRECTORY, suite.part)
        file.parent.mkdir(parents=True, exist_ok=True)
        # The plugin runs no test that has an outcome already.
        file.write_text("")
        if suite.environment:
            # It stays: who runs a test again needs it.
            shutil.rmtree(self._lent, ignore_errors=True)
            self._lent.mkdir()
            lend(self._lent, *PYTEST)
        environ = {**os.environ, **({"PYTHONPATH": str(self._lent)} if suite.environment else {})}
        command = self._command(suite, file)
        return processes.start(command, env=environ, cwd=paths.ROOT, log=suite.log)

    def _command(self, suite: Suite, file: Path) -> list[str | Path]:
        return [
            *(suite.python, "-m", "pytest", suite.folder),
            *("-q", "-rN", "-o", "verbosity_assertions=2"),
            f"--color={'yes' if progress.console.color_system else 'no'}",
            # Not by PYTHONPATH: what tests start would have it too.
            *("-o", f"pythonpath={shlex.quote(str(PLUGIN.parent))}"),
            *("-p", PLUGIN.stem, "--events", file),
            *(("-k", self.select) if self.select else ()),
        ]

    def _line(self, running: Sequence[Suite], elapsed: float) -> str:
        """How far suites are, and when all will be done."""
        told, left = list[str](), 0.0
        for suite in running:
            known = pytest_events.read(DIRECTORY, suite.part)
            done, total = len(known.outcomes.keys() & set(known.collected)), len(known.collected)
            its = self._about[suite] - elapsed
            if its < 0 or 0 < total == done:
                its = elapsed / max(done, 1) * (total - done)
            left = max(left, its)
            failed = len(_failed(known))
            told.append(
                f"{self.suites.index(suite) + 1}/{len(self.suites)} {suite}: "
                + (f"{done} of {total} tests" if total else "collecting")
                + (f", {failed} failed" if failed else "")
            )
        number = next(i for i, group in enumerate(self.groups, 1) if running[0] in group)
        left += self._longest(self.groups[number:])
        return f"{'; '.join(told)}, {self._estimate(left)} left"

    def _longest(self, groups: Iterable[Sequence[Suite]]) -> float:
        """The seconds of groups one after another."""
        return sum(max(self._about[suite] for suite in group) for group in groups)

    def _conclude(self, suite: Suite, status: int) -> None:
        output = suite.log.read_text("utf-8", "replace")
        passed = status == PASSED or (status == NOTHING_SELECTED and bool(self.select))
        known = pytest_events.read(DIRECTORY, suite.part)
        if not passed and not _failed(known):
            failed = {"id": known.open or suite.folder, "outcome": "failed", "seconds": 0}
            with pytest_events.place(DIRECTORY, suite.part).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({**failed, "reason": f"pytest ended with {status}"}) + "\n")
        heading = HEADING.search(output)
        if heading or not passed:
            progress.say(output[heading.start() if heading else 0 :].rstrip())
        if status in (PASSED, FAILED) and not self.select:
            known_times = report.read(self._times)
            report.write({**known_times, str(suite): round(self._took[suite], 1)}, self._times)
        progress.say(f"{suite}: {_summary([suite])}, {progress.seconds(self._took[suite])}")

    def _estimate(self, seconds: float) -> str:
        # How long some of the tests take is not known.
        bound = "at most" if self.select else "about"
        return f"{bound} {seconds:.0f} s" if seconds < 90 else f"{bound} {seconds / 60:.0f} min"

    def _again(self, suite: Suite, test: str) -> str:
        """The command that runs a test again."""
        python, lent = (os.path.relpath(path, paths.ROOT) for path in (suite.python, self._lent))
        variable = f"PYTHONPATH=$PWD/{lent} " if suite.environment else ""
        return f"{variable}{shlex.quote(python)} -m pytest {shlex.quote(test)}"

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        ran = list(self._took)
        results = pytest_events.results(DIRECTORY, [suite.part for suite in ran])
        progress.say("")
        for reason, count in pytest_results.reasons(results.outcomes):
            progress.say(f"{count} skipped: {' '.join(reason.removeprefix('Skipped: ').split())}")
        failed = {suite: _failed(pytest_events.read(DIRECTORY, suite.part)) for suite in ran}
        for suite, tests in failed.items():
            for test, outcome in tests.items():
                progress.say(f"failed: {test}: {outcome.reason[:100]}")
                progress.say(f"  {self._again(suite, test)}")
        rows = [
            [str(suite), *re.findall(r"\d+", _summary([suite])), f"{self._took[suite] / 60:.1f}"]
            for suite in ran
        ]
        progress.table(["part", *KINDS, "minutes"], rows)
        progress.say(_summary(ran))
        if kind is None and any(failed.values()):
            named = [f"{suite} ({len(tests)})" for suite, tests in failed.items() if tests]
            raise CommandFailed(f"failed: {', '.join(named)}")


def _summary(suites: Sequence[Suite]) -> str:
    found = pytest_results.counts(
        pytest_events.results(DIRECTORY, [suite.part for suite in suites]), ()
    )
    return ", ".join(f"{found[kind]} {kind}" for kind in KINDS)


def _failed(known: Events) -> dict[str, Outcome]:
    return {test: found for test, found in known.outcomes.items() if found.outcome == "failed"}


@contextlib.contextmanager
def _shown() -> Iterator[Callable[[str], None]]:
    """What shows a line: in place of the last one on a terminal, else now and then."""
    if progress.console.is_interactive:
        with Live(console=progress.console, auto_refresh=False, transient=True) as live:
            yield lambda line: live.update(
                Text(line, no_wrap=True, overflow="ellipsis"), refresh=True
            )
        return
    told = time.monotonic()

    def show(line: str) -> None:
        nonlocal told
        if time.monotonic() - told >= PACE:
            progress.say(line)
            told = time.monotonic()

    yield show


def _end(group: int, poll: Callable[[], int | None]) -> None:
    """End a pytest as Ctrl-C does, so that its fixtures end what they began; at last, kill it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGINT)
        for _ in range(PATIENCE * 10):
            if poll() is not None:
                return
            time.sleep(0.1)
        os.killpg(group, signal.SIGKILL)
