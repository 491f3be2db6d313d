"""Test the parsing of the events that the pytest plugin writes as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

from builder.proof import pytest_events
from builder.proof.pytest_events import Part
from builder.proof.pytest_results import Outcome

PART = Part("c", "", "theano/tests/test_a.py", 1, 2)
TESTS = [f"{PART.file}::test_{number}" for number in range(4)]
SKIPPED: dict[str, object] = {"outcome": "skipped", "seconds": 0, "reason": "no GPU"}


def record_events(directory: Path, *lines: dict[str, object]) -> pytest_events.Events:
    """Write the events of PART, and read them."""
    file = pytest_events.get_event_file(directory, PART)
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return pytest_events.read_events(directory, PART)


def test_a_part_without_a_file_of_events_is_incomplete(tmp_path: Path) -> None:
    assert pytest_events.read_events(tmp_path, PART) == pytest_events.Events(
        (), {}, "", complete=False
    )


def test_a_started_test_without_an_outcome_is_open(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [
        {"collected": TESTS},
        {"started": TESTS[1]},
        {"id": TESTS[1], **SKIPPED},
        {"started": TESTS[3]},
    ]
    events = record_events(tmp_path, *lines)
    assert events.outcomes == {TESTS[1]: Outcome("skipped", 0, "no GPU")}
    assert events.open == TESTS[3]
    assert not events.complete


def test_a_file_that_is_skipped_as_a_whole_is_complete(tmp_path: Path) -> None:
    events = record_events(tmp_path, {"id": PART.file, **SKIPPED}, {"collected": []})
    assert events.complete
    assert list(events.outcomes) == [PART.file]


def test_results_of_a_file_are_separate_for_each_configuration(tmp_path: Path) -> None:
    record_events(tmp_path, {"collected": TESTS}, {"id": TESTS[1], **SKIPPED})
    python_part = Part("python", "cxx=", PART.file, 0, 1)
    results = pytest_events.collect_results(tmp_path, [PART, python_part])
    assert list(results.outcomes) == [("c", TESTS[1])]
    assert results.collected == {("c", PART.file): tuple(TESTS), ("python", PART.file): ()}
