"""Test runs of conformance tests: restarts, time limits and interrupts; pytest is fake."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.proof import pytest_events, pytest_runs
from builder.proof.pytest_events import Part
from builder.proof.pytest_results import Outcome
from builder.proof.pytest_runs import Interpreter

PART = Part("c", "mode=DebugMode", "theano/tests/test_a.py", 0, 2)
TESTS = [f"{PART.file}::test_{number}" for number in range(4)]
Pytest = Callable[[Path], None]
Start = Callable[..., list[dict[str, str]]]


def write(file: Path, *events: dict[str, object]) -> None:
    """Append events to a file, as the pytest plugin does."""
    with file.open("a") as stream:
        stream.writelines(json.dumps(event) + "\n" for event in events)


def make_event(test: str) -> dict[str, object]:
    """Make the event of a test that passed."""
    return {"id": test, "outcome": "passed", "seconds": 1.0, "reason": ""}


class Process:
    """A fake process that was killed by SIGSEGV (-11)."""

    pid = 0

    def poll(self) -> int:
        return -11

    def wait(self) -> int:
        return -11


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Return a function that runs PART with fake pytest processes.

    Each argument is a function that replaces one process: it gets the path of the file of events.
    The returned function checks that all processes started, and returns their environment
    variables.
    """

    def run_part(*processes: Pytest) -> list[dict[str, str]]:
        pending = list(processes)
        environs = []

        def start(command: list[object], *, env: dict[str, str], **_: object) -> Process:
            environs.append(env)
            pending.pop(0)(Path(str(command[command.index("--events") + 1])))
            return Process()

        monkeypatch.setattr(pytest_runs.processes, "start", start)
        interpreter = Interpreter(Path("/python"), Path("/site"), (Path("/lent"),))
        pytest_runs.Run(interpreter, tmp_path, {"LANG": "C"}, jobs=2).run([PART])
        assert not pending
        return environs

    return run_part


def test_a_part_whose_tests_have_outcomes_is_not_run_again(run: Start, tmp_path: Path) -> None:
    def write_events(events: Path) -> None:
        write(events, {"collected": TESTS}, make_event(TESTS[0]), make_event(TESTS[2]))

    [environ] = run(write_events)
    assert environ["LANG"] == "C"
    assert environ["THEANO_FLAGS"].endswith(",mode=DebugMode")
    assert pytest_events.read_events(tmp_path, PART).complete
    run()
    results = pytest_events.collect_results(tmp_path, [PART])
    assert [test for _, test in results.outcomes] == [TESTS[0], TESTS[2]]
    assert results.collected == {("c", PART.file): tuple(TESTS)}


def test_python_2_runs_tests_with_nose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start_nose(command: list[object], **_: object) -> Process:
        assert command[1:4] == [pytest_runs.NOSE, Path("/site"), PART.file]
        events = Path(str(command[command.index("--events") + 1]))
        # nose reports the list of tests only at the end.
        write(events, make_event(TESTS[0]), make_event(TESTS[2]), {"collected": TESTS})
        return Process()

    monkeypatch.setattr(pytest_runs.processes, "start", start_nose)
    interpreter = Interpreter(Path("/python"), Path("/site"), ())
    pytest_runs.Run(interpreter, tmp_path, {}, 1, pytest_runs.THEANO_OF_2017).run([PART])
    assert pytest_events.read_events(tmp_path, PART).complete


def test_after_a_crash_the_remaining_tests_run_in_a_new_process(run: Start, tmp_path: Path) -> None:
    run(
        lambda events: write(events, {"collected": TESTS}, {"started": TESTS[0]}),
        lambda events: write(events, {"collected": TESTS}, make_event(TESTS[2])),
    )
    assert pytest_events.read_events(tmp_path, PART).outcomes == {
        TESTS[0]: Outcome("failed", 0, "its process ended with -11"),
        TESTS[2]: Outcome("passed", 1.0, ""),
    }


def test_a_crash_before_the_first_test_is_a_failure_of_the_file(run: Start, tmp_path: Path) -> None:
    run(lambda events: None)
    reason = "its process ended with -11, before its first test"
    assert pytest_events.read_events(tmp_path, PART).outcomes == {
        PART.file: Outcome("failed", 0, reason)
    }


def test_a_test_beyond_the_time_limit_is_killed_and_fails(
    run: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[object] = []
    monkeypatch.setattr(pytest_runs, "LIMIT", 0)
    monkeypatch.setattr(Process, "poll", lambda self: None)
    monkeypatch.setattr(pytest_runs, "_kill", killed.append)
    run(lambda events: write(events, {"collected": TESTS[:1]}, {"started": TESTS[0]}))
    assert len(killed) == 1
    [outcome] = pytest_events.read_events(tmp_path, PART).outcomes.values()
    assert outcome == Outcome("failed", 0, "took longer than 0 s")


def test_an_interruption_kills_all_processes(run: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[object] = []

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Process, "poll", lambda self: None)
    monkeypatch.setattr(pytest_runs, "_kill", killed.append)
    monkeypatch.setattr(pytest_runs.time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(lambda events: None)
    assert len(killed) == 1
