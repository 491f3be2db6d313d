"""Test the counts, reports and comparisons of test outcomes."""

from __future__ import annotations

import json
from pathlib import Path

from builder.proof import pytest_results
from builder.proof.pytest_results import Outcome, Results

PASSED = Outcome("passed", 1.5, "")
FAILED = Outcome("failed", 0.5, "AssertionError")
SKIPPED = Outcome("skipped", 0.0, "no GPU")
FILE = "theano/tests/test_a.py"


def make_key(test: str) -> tuple[str, str]:
    """Return the key of a test of FILE: its configuration "c" and its id."""
    return "c", f"{FILE}::{test}"


RESULTS = Results(
    outcomes={
        make_key("one"): PASSED,
        make_key("two"): FAILED,
        make_key("three"): FAILED,
        make_key("four"): SKIPPED,
    },
    collected={("c", FILE): tuple(make_key(t)[1] for t in ("one", "two", "three", "four", "five"))},
)


def test_each_test_is_counted_once() -> None:
    assert pytest_results.count_outcomes(RESULTS, [make_key("two"), make_key("one")]) == {
        "passed": 1,
        "failed": 1,
        "expected failures": 1,
        "skipped": 1,
        "not run": 1,
    }


def test_a_file_that_is_skipped_as_a_whole_counts_as_one_test() -> None:
    results = Results({("c", FILE): SKIPPED}, {("c", FILE): ()})
    counts = pytest_results.count_outcomes(results, [])
    assert counts["skipped"] == 1
    assert sum(counts.values()) == 1


def test_a_report_has_all_outcomes(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(pytest_results.make_document(RESULTS)))
    assert pytest_results.read_reports([file]) == RESULTS.outcomes


def test_only_tests_that_ran_on_both_sides_are_compared() -> None:
    reference = {
        make_key("one"): PASSED,
        make_key("two"): PASSED,
        make_key("three"): FAILED,
        make_key("six"): PASSED,
    }
    assert pytest_results.compare_by_file(reference, RESULTS.outcomes) == [
        ["c", FILE, "2/1/0", "1/2/0", "1"]
    ]


def test_outcomes_are_counted_by_file() -> None:
    assert pytest_results.make_document(RESULTS)["files"] == {
        "c": {FILE: {"passed": 1, "failed": 2, "skipped": 1, "seconds": 2.5}}
    }


def test_skip_reasons_are_counted() -> None:
    assert pytest_results.count_skip_reasons(RESULTS.outcomes) == [("no GPU", 1)]
