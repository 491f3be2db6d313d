"""Test the runs of the project's test suites, with fake pytest processes."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from builder.common import paths, progress
from builder.common.errors import CommandFailed
from builder.proof import own_tests
from builder.proof.own_tests import Run, Suite

UNITS = Suite("tests/unit", 70)
PATCHES = Suite("tests/patches", 120, "openblas", "a stack")
CORPUS = Suite("tests/programs/corpus", 50, "openblas", concurrent=True)
INTEGRATION = Suite("tests/integration", 90, concurrent=True)
Event = dict[str, object]
# The type of the fixture set_pytest, a function that returns the commands of the fake processes.
SetPytest = Callable[..., list[list[str]]]
Capture = pytest.CaptureFixture[str]


def make_end_event(test: str, outcome: str = "passed", reason: str = "") -> Event:
    """Make the event that the pytest plugin writes at the end of a test."""
    return {"id": test, "outcome": outcome, "seconds": 0, "reason": reason}


class Process:
    """A fake process that ends with the exit code ``status`` after ``polls`` polls."""

    pid = 4711

    def __init__(self, status: int, polls: int) -> None:
        self.status = status
        self.polls = polls

    def poll(self) -> int | None:
        self.polls -= 1
        return self.status if self.polls < 0 else None

    def wait(self) -> int:
        return self.status


@pytest.fixture(autouse=True)
def isolate_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty checkout, and poll without a pause."""
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(own_tests, "DIRECTORY", tmp_path / "tests")
    monkeypatch.setattr(own_tests.time, "sleep", lambda _: None)


@pytest.fixture
def set_pytest(monkeypatch: pytest.MonkeyPatch) -> SetPytest:
    """Return a function that sets the behaviour of the next pytest processes.

    The arguments are the events, the exit code and the output of each process, and the number of
    polls before the process ends. The function returns the list of the processes' commands.
    """

    def set_behaviour(
        *events: Event, status: int = 0, output: str = "", polls: int = 0
    ) -> list[list[str]]:
        commands = []

        def start(command: list[object], *, log: Path, **_: object) -> Process:
            commands.append([str(part) for part in command])
            file = Path(str(command[command.index("--events") + 1]))
            with file.open("a") as stream:
                stream.writelines(json.dumps(event) + "\n" for event in events)
            log.parent.mkdir(exist_ok=True)
            log.write_text(output)
            return Process(status, polls)

        monkeypatch.setattr(own_tests.processes, "start", start)
        return commands

    return set_behaviour


def test_the_plan_has_the_times_of_the_last_run_or_estimates(
    set_pytest: SetPytest, capsys: Capture
) -> None:
    set_pytest(make_end_event("a"))
    absent = Suite("tests/cuda", 60, "cuda", absent="build it")
    with Run([UNITS, PATCHES, absent], "") as tests:
        plan = capsys.readouterr().out.splitlines()
        assert [line.split() for line in plan[1:4]] == [
            ["tests/unit", "about", "70", "s"],
            ["tests/patches", "in", "openblas", "about", "2", "min", "a", "stack"],
            ["tests/cuda", "in", "cuda", "not", "run", "needs:", "build", "it"],
        ]
        assert plan[4] == "about 3 min in all, on 2 cores"
        assert tests.suites == [UNITS, PATCHES]
        tests.run(UNITS)
    capsys.readouterr()
    Run([UNITS], "")
    assert "about 0 s in all, as in the last run" in capsys.readouterr().out
    Run([UNITS, PATCHES], "")
    assert "about 2 min in all, on 2 cores" in capsys.readouterr().out


def test_the_time_of_selected_tests_does_not_replace_the_estimate(
    set_pytest: SetPytest, capsys: Capture
) -> None:
    set_pytest(make_end_event("a"))
    with Run([UNITS], "scan") as tests:
        tests.run(UNITS)
    Run([UNITS], "")
    assert "at most 70 s in all" in (output := capsys.readouterr().out)
    assert "about 70 s in all" in output


@pytest.mark.parametrize(
    ("status", "select", "passes"),
    [(0, "", True), (5, "", False), (5, "scan", True), (1, "scan", False), (-9, "scan", False)],
)
def test_a_suite_may_be_empty_only_with_a_selection(
    status: int, select: str, passes: bool, set_pytest: SetPytest
) -> None:
    """pytest's exit code 5 (no tests) is an error only without a selection."""
    commands = set_pytest(status=status)

    def run() -> None:
        with Run([UNITS], select) as tests:
            tests.run(UNITS)

    if passes:
        run()
    else:
        with pytest.raises(CommandFailed, match=r"tests/unit \(1\)"):
            run()
    assert (commands[0][-2:] == ["-k", select]) == bool(select)


def test_the_summary_lists_skip_reasons_and_failures(
    set_pytest: SetPytest, capsys: Capture
) -> None:
    skipped = make_end_event("s", "skipped", "Skipped: no daemon\n  -> start it")
    failed = make_end_event("tests/test_a.py::test_b[c d]", "failed", "AssertionError")
    message = r"^failed: tests/patches in openblas \(1\)$"
    with (
        pytest.raises(CommandFailed, match=message),
        Run([UNITS, PATCHES], "") as tests,
    ):
        set_pytest(make_end_event("a"), skipped, output="..")
        tests.run(UNITS)
        set_pytest(make_end_event("b"), skipped, failed, status=1)
        tests.run(PATCHES)
        capsys.readouterr()
    _, *lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "2 skipped: no daemon -> start it",
        "failed: tests/test_a.py::test_b[c d]: AssertionError",
    ]
    assert lines[2].startswith("  PYTHONPATH=$PWD/tests/lent ")
    assert lines[2].endswith("/openblas/bin/python -m pytest 'tests/test_a.py::test_b[c d]'")
    assert (own_tests.DIRECTORY / "lent" / "pytest" / "__init__.py").exists()
    assert lines[4].split() == ["tests/unit", "1", "0", "1", "0.0"]
    assert lines[5].split() == ["tests/patches", "in", "openblas", "1", "1", "1", "0.0"]
    assert lines[6:] == ["2 passed, 1 failed, 2 skipped"]


@pytest.mark.parametrize("heading", ["=== FAILURES ===", "\x1b[33m== warnings summary ==\x1b[0m"])
def test_only_failures_and_warnings_of_pytest_are_printed(
    heading: str, set_pytest: SetPytest, capsys: Capture
) -> None:
    set_pytest(output=f"....\n{heading}\ntext")
    tests = Run([UNITS], "")
    capsys.readouterr()
    tests.run(UNITS)
    assert capsys.readouterr().out.splitlines()[:2] == [heading, "text"]
    set_pytest(output="....\n")
    tests.run(UNITS)
    assert capsys.readouterr().out == "tests/unit: 0 passed, 0 failed, 0 skipped, 0:00\n"


def test_the_running_test_of_a_crashed_pytest_is_a_failure(
    set_pytest: SetPytest, capsys: Capture
) -> None:
    events = [{"collected": ["a", "b"]}, {"started": "a"}, make_end_event("a"), {"started": "b"}]
    set_pytest(*events, status=-11, output=".Fatal Python error")
    with pytest.raises(CommandFailed), Run([UNITS], "") as tests:
        tests.run(UNITS)
    lines = capsys.readouterr().out.splitlines()
    assert ".Fatal Python error" in lines
    assert "failed: b: pytest ended with -11" in lines
    assert lines[-1] == "1 passed, 1 failed, 0 skipped"


def test_pytest_gets_sigint_and_its_results_are_counted(
    set_pytest: SetPytest, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    sent = []

    def interrupt(_: float) -> None:
        monkeypatch.setattr(own_tests.time, "sleep", lambda _: None)
        raise KeyboardInterrupt

    monkeypatch.setattr(own_tests.time, "sleep", interrupt)
    monkeypatch.setattr(own_tests.os, "killpg", lambda *signalled: sent.append(signalled))
    set_pytest(make_end_event("a"), make_end_event("b", "failed"), polls=3, status=2)
    with pytest.raises(KeyboardInterrupt), Run([UNITS, PATCHES], "") as tests:
        tests.run(UNITS)
    assert sent == [(Process.pid, signal.SIGINT)]
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_a_pytest_that_ignores_sigint_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []
    monkeypatch.setattr(own_tests.os, "killpg", lambda *signalled: sent.append(signalled))
    own_tests._interrupt(Process.pid, lambda: None)
    assert sent == [(Process.pid, signal.SIGINT), (Process.pid, signal.SIGKILL)]


# The events of a suite of three tests. Two of the tests have ended.
UNDER_WAY = (
    {"collected": ["a", "b", "c"]},
    *({"started": "a"}, make_end_event("a"), {"started": "b"}, make_end_event("b", "failed")),
)
LINE = "1/2 tests/unit: 2 of 3 tests, 1 failed, about 3 min left"


class Screen(io.StringIO):
    """A text stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_progress_line_is_removed(
    set_pytest: SetPytest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    console = Console(file=screen, color_system="standard", width=40)
    monkeypatch.setattr(progress, "console", console)
    commands = set_pytest(*UNDER_WAY, polls=2)
    Run([UNITS, PATCHES], "").run(UNITS)
    output = screen.getvalue()
    assert LINE[:39] + "…" in output
    assert "\x1b[2K" in output
    assert "--color=yes" in commands[0]


@pytest.mark.parametrize(("pace", "lines"), [(0, [LINE] * 2), (30, [])])
def test_without_a_terminal_progress_lines_are_printed(
    pace: int,
    lines: list[str],
    set_pytest: SetPytest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.setattr(own_tests, "LINE_INTERVAL", pace)
    commands = set_pytest(*UNDER_WAY, polls=2)
    tests = Run([UNITS, PATCHES], "")
    capsys.readouterr()
    tests.run(UNITS)
    output = capsys.readouterr().out
    assert output.splitlines()[:-1] == lines
    assert "\x1b" not in output
    assert "--color=no" in commands[0]


def test_force_color_adds_no_control_sequences_to_lines_in_a_file(
    set_pytest: SetPytest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(own_tests, "LINE_INTERVAL", 0)
    file = io.StringIO()
    monkeypatch.setattr(progress, "console", Console(file=file, highlight=False, soft_wrap=True))
    set_pytest(*UNDER_WAY, polls=2)
    Run([UNITS, PATCHES], "").run(UNITS)
    assert LINE in file.getvalue().splitlines()
    assert "\x1b" not in file.getvalue()


@pytest.mark.parametrize(
    ("done", "elapsed", "remaining"),
    [(0, 0, "3 min"), (1, 60, "2 min"), (1, 80, "5 min"), (3, 9, "2 min")],
)
def test_the_time_left_follows_the_estimate_or_the_measured_pace(
    done: int, elapsed: int, remaining: str, set_pytest: SetPytest
) -> None:
    set_pytest({"collected": ["a", "b", "c"]}, *map(make_end_event, "abc"[:done]))
    tests = Run([UNITS, PATCHES], "")
    tests.run(UNITS)
    assert tests._format_line([UNITS], elapsed).endswith(
        f"{done} of 3 tests, about {remaining} left"
    )


def test_the_time_of_concurrent_suites_is_not_added(
    set_pytest: SetPytest, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(own_tests, "LINE_INTERVAL", 0)
    commands = set_pytest({"collected": ["a", "b"]}, make_end_event("a"), polls=1)
    with Run([UNITS, PATCHES, INTEGRATION], "") as tests:
        assert tests.groups == [[UNITS], [PATCHES, INTEGRATION]]
        assert "about 3 min in all" in capsys.readouterr().out
        tests.run(*tests.groups[1])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        "2/3 tests/patches in openblas: 1 of 2 tests; 3/3 tests/integration: 1 of 2 tests,"
        " about 2 min left"
    )
    assert [line.split(":")[0] for line in lines[1:3]] == [str(PATCHES), str(INTEGRATION)]
    assert len(commands) == 2


def test_concurrent_suites_share_the_links_to_pytest(
    set_pytest: SetPytest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start of a suite must not remove the links from which another suite runs."""
    set_pytest(make_end_event("a"))
    start = own_tests.processes.start
    used = own_tests.DIRECTORY / "lent" / "used"
    already_used = []

    def start_from_links(command: list[object], **options: Any) -> Any:
        already_used.append(used.exists())
        used.touch()
        return start(command, **options)

    monkeypatch.setattr(own_tests.processes, "start", start_from_links)
    Run([PATCHES, CORPUS], "").run(PATCHES, CORPUS)
    assert already_used == [False, True]


def test_an_incomplete_line_of_events_is_read_again_later(
    set_pytest: SetPytest, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_pytest(make_end_event("a"), polls=1)
    read = own_tests.pytest_events.read_events
    monkeypatch.setattr(own_tests.pytest_events, "read_events", lambda *_: json.loads('{"coll'))
    monkeypatch.setattr(
        own_tests.time,
        "sleep",
        lambda _: monkeypatch.setattr(own_tests.pytest_events, "read_events", read),
    )
    with Run([UNITS], "") as tests:
        tests.run(UNITS)
