"""How tests of Theano ended: as the report keeps it, and beside the reference."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# A configuration, and a test's id or a file: one that could not be imported, or skips itself.
Key = tuple[str, str]
KINDS = ("passed", "failed", "skipped")


@dataclass(frozen=True)
class Outcome:
    """How a test ended, one of KINDS, after how many CPU seconds, and why if it did not pass."""

    outcome: str
    seconds: float
    reason: str


@dataclass(frozen=True)
class Results:
    """The outcomes of what ran, and all tests that there are in each configuration and file."""

    outcomes: Mapping[Key, Outcome]
    collected: Mapping[Key, tuple[str, ...]]


def counts(results: Results, expected: Iterable[Key]) -> dict[str, int]:
    """How many tests ended in which way, were expected to fail, or did not run."""
    listed = set(expected)
    kinds = Counter(
        "expected failures" if outcome.outcome == "failed" and key in listed else outcome.outcome
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


def document(results: Results) -> dict[str, dict[str, Any]]:
    """The outcomes for JSON, of files and of tests, by configuration."""
    nested: dict[str, dict[str, Any]] = {"files": {}, "tests": {}}
    for (configuration, test), outcome in results.outcomes.items():
        nested["tests"].setdefault(configuration, {})[test] = asdict(outcome)
    for (configuration, file), row in by_file(results.outcomes).items():
        nested["files"].setdefault(configuration, {})[file] = row
    return nested


def by_file(outcomes: Mapping[Key, Outcome]) -> dict[Key, dict[str, float]]:
    """How many tests of each configuration and file ended in which way, and their CPU seconds."""
    files: dict[Key, dict[str, float]] = {}
    for (configuration, test), outcome in outcomes.items():
        place = configuration, test.partition("::")[0]
        row = files.setdefault(place, {**dict.fromkeys(KINDS, 0), "seconds": 0})
        row[outcome.outcome] += 1
        row["seconds"] = round(row["seconds"] + outcome.seconds, 2)
    return files


def reasons(outcomes: Mapping[Key, Outcome]) -> list[tuple[str, int]]:
    """Why tests were skipped, the most frequent reason first."""
    return Counter(o.reason for o in outcomes.values() if o.outcome == "skipped").most_common()


def read(files: Iterable[Path]) -> dict[Key, Outcome]:
    """The outcomes of reports that hold such a document under ``tests``."""
    known: dict[Key, Outcome] = {}
    for file in files:
        for configuration, tests in json.loads(file.read_text(encoding="utf-8"))["tests"].items():
            known |= {(configuration, test): Outcome(**row) for test, row in tests.items()}
    return known


def side_by_side(
    reference: Mapping[Key, Outcome], outcomes: Mapping[Key, Outcome]
) -> list[list[str]]:
    """A row for each configuration and file, of the tests that ran in both.

    Returns:
        configuration, file, how many passed/failed/skipped on either side, and how many passed
        in ``reference`` and failed in ``outcomes``.
    """
    both = sorted(reference.keys() & outcomes.keys())
    sides = [by_file({key: side[key] for key in both}) for side in (reference, outcomes)]
    worse = Counter(
        (configuration, test.partition("::")[0])
        for configuration, test in both
        if (reference[configuration, test].outcome, outcomes[configuration, test].outcome)
        == ("passed", "failed")
    )
    return [
        [
            *place,
            *("/".join(str(side[place][kind]) for kind in KINDS) for side in sides),
            str(worse[place]),
        ]
        for place in sides[0]
    ]
