"""Events, as the plugin writes them and as the builder reads them."""

from __future__ import annotations

import json
from pathlib import Path

from builder.proof import pytest_events
from builder.proof.pytest_events import Part
from builder.proof.pytest_results import Outcome

PART = Part("c", "", "theano/tests/test_a.py", 1, 2)
TESTS = [f"{PART.file}::test_{number}" for number in range(4)]
SKIPPED: dict[str, object] = {"outcome": "skipped", "seconds": 0, "reason": "no GPU"}


def happened(directory: Path, *lines: dict[str, object]) -> pytest_events.Events:
    file = pytest_events.place(directory, PART)
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return pytest_events.read(directory, PART)


def test_nothing_happened(tmp_path: Path) -> None:
    assert pytest_events.read(tmp_path, PART) == pytest_events.Events((), {}, "", complete=False)


def test_a_test_is_open_until_it_has_an_outcome(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [
        {"collected": TESTS},
        {"started": TESTS[1]},
        {"id": TESTS[1], **SKIPPED},
        {"started": TESTS[3]},
    ]
    known = happened(tmp_path, *lines)
    assert known.outcomes == {TESTS[1]: Outcome("skipped", 0, "no GPU")}
    assert known.open == TESTS[3]
    assert not known.complete


def test_a_file_that_skips_itself_is_complete(tmp_path: Path) -> None:
    known = happened(tmp_path, {"id": PART.file, **SKIPPED}, {"collected": []})
    assert known.complete
    assert list(known.outcomes) == [PART.file]


def test_the_same_file_in_two_configurations(tmp_path: Path) -> None:
    happened(tmp_path, {"collected": TESTS}, {"id": TESTS[1], **SKIPPED})
    other = Part("python", "cxx=", PART.file, 0, 1)
    results = pytest_events.results(tmp_path, [PART, other])
    assert list(results.outcomes) == [("c", TESTS[1])]
    assert results.collected == {("c", PART.file): tuple(TESTS), ("python", PART.file): ()}
