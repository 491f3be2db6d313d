"""Count the outcomes of tests, write them to a report, and compare them with a reference."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# A configuration, and pytest's id of a test. The id is the path of a file if the file cannot be
# imported or skips itself.
Key = tuple[str, str]
KINDS = ("passed", "failed", "skipped")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a test, one of KINDS; its CPU seconds; the reason, "" if the test passed."""

    outcome: str
    seconds: float
    reason: str


@dataclass(frozen=True)
class Results:
    """The results of a run of tests.

    Attributes:
        outcomes: the outcomes of the tests that ran.
        collected: the ids of all tests of a file, by configuration and path of the file.
    """

    outcomes: Mapping[Key, Outcome]
    collected: Mapping[Key, tuple[str, ...]]


def count_outcomes(results: Results, expected: Iterable[Key]) -> dict[str, int]:
    """Count the tests by outcome; count expected failures and tests that did not run separately.

    Args:
        results: the results of a run.
        expected: the tests that are expected to fail.
    """
    expected_keys = set(expected)
    kinds = Counter(
        "expected failures"
        if outcome.outcome == "failed" and key in expected_keys
        else outcome.outcome
        for key, outcome in results.outcomes.items()
    )
    tests = {
        (configuration, test)
        for (configuration, _), tests in results.collected.items()
        for test in tests
    }
    order = ("passed", "failed", "expected failures", "skipped")
    not_run = len(tests - results.outcomes.keys())
    return {**{kind: kinds[kind] for kind in order}, "not run": not_run}


def make_document(results: Results) -> dict[str, dict[str, Any]]:
    """Make the keys ``files`` and ``tests`` of a report.

    ``files`` has the counts of :func:`count_by_file`, by configuration and file. ``tests`` has the
    outcomes, by configuration and test.
    """
    nested: dict[str, dict[str, Any]] = {"files": {}, "tests": {}}
    for (configuration, test), outcome in results.outcomes.items():
        nested["tests"].setdefault(configuration, {})[test] = asdict(outcome)
    for (configuration, file), row in count_by_file(results.outcomes).items():
        nested["files"].setdefault(configuration, {})[file] = row
    return nested


def count_by_file(outcomes: Mapping[Key, Outcome]) -> dict[Key, dict[str, float]]:
    """Count the outcomes, and sum the CPU seconds, of each configuration and file."""
    files: dict[Key, dict[str, float]] = {}
    for (configuration, test), outcome in outcomes.items():
        key = configuration, test.partition("::")[0]
        row = files.setdefault(key, {**dict.fromkeys(KINDS, 0), "seconds": 0})
        row[outcome.outcome] += 1
        row["seconds"] = round(row["seconds"] + outcome.seconds, 2)
    return files


def count_skip_reasons(outcomes: Mapping[Key, Outcome]) -> list[tuple[str, int]]:
    """Count the reasons of skipped tests, the most frequent first."""
    return Counter(o.reason for o in outcomes.values() if o.outcome == "skipped").most_common()


def read_reports(files: Iterable[Path]) -> dict[Key, Outcome]:
    """Read the outcomes of tests from reports with the keys of :func:`make_document`."""
    outcomes: dict[Key, Outcome] = {}
    for file in files:
        for configuration, tests in json.loads(file.read_text(encoding="utf-8"))["tests"].items():
            outcomes |= {(configuration, test): Outcome(**row) for test, row in tests.items()}
    return outcomes


def compare_by_file(
    reference: Mapping[Key, Outcome], outcomes: Mapping[Key, Outcome]
) -> list[list[str]]:
    """Compare the common tests of two runs, by configuration and file.

    Returns:
        A row for each configuration and file: the configuration; the file; the numbers of tests
        that passed, failed and were skipped in ``reference``, as in ``10/2/1``; these numbers in
        ``outcomes``; the number of tests that passed in ``reference`` and failed in ``outcomes``.
    """
    common = sorted(reference.keys() & outcomes.keys())
    sides = [count_by_file({key: side[key] for key in common}) for side in (reference, outcomes)]
    worse = Counter(
        (configuration, test.partition("::")[0])
        for configuration, test in common
        if (reference[configuration, test].outcome, outcomes[configuration, test].outcome)
        == ("passed", "failed")
    )
    return [
        [
            *key,
            *("/".join(str(side[key][kind]) for kind in KINDS) for side in sides),
            str(worse[key]),
        ]
        for key in sides[0]
    ]
