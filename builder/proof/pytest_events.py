"""Read the events of tests: collected, started, ended. conformance/theano_events.py writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.proof.pytest_results import Outcome, Results


@dataclass(frozen=True)
class Part:
    """The slice ``[first::step]`` of a file's tests, which runs with a configuration's flags."""

    configuration: str
    flags: str
    file: str
    first: int
    step: int

    def __str__(self) -> str:
        return f"{self.configuration} {self.file}"


@dataclass(frozen=True)
class Events:
    """The recorded events of a part.

    Attributes:
        collected: the ids of all tests of the part's file.
        outcomes: the outcomes of the tests that ended, by id.
        open: the id of the test that started and has not ended; "" if there is none.
        complete: whether all tests of the part have an outcome.
    """

    collected: tuple[str, ...]
    outcomes: Mapping[str, Outcome]
    open: str
    complete: bool


def read_events(directory: Path, part: Part) -> Events:
    """Read a part's recorded events from the directory of a run."""
    collected: list[str] | None = None
    outcomes: dict[str, Outcome] = {}
    started = ""
    file = get_event_file(directory, part)
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        event = json.loads(line)
        if "collected" in event:
            collected = event["collected"]
        elif "started" in event:
            started = event["started"]
        else:
            test = event.pop("id")
            outcomes[test] = Outcome(**event)
    selected = set(() if collected is None else collected[part.first :: part.step])
    return Events(
        collected=tuple(collected or ()),
        outcomes=outcomes,
        open="" if started in outcomes else started,
        complete=collected is not None and selected <= set(outcomes),
    )


def collect_results(directory: Path, parts: Sequence[Part]) -> Results:
    """Collect the recorded outcomes and tests of all parts."""
    events = {part: read_events(directory, part) for part in parts}
    return Results(
        outcomes={
            (part.configuration, test): outcome
            for part, row in events.items()
            for test, outcome in row.outcomes.items()
        },
        collected={(part.configuration, part.file): row.collected for part, row in events.items()},
    )


def get_event_file(directory: Path, part: Part) -> Path:
    """Return the path of the file with a part's events, below the directory of a run."""
    return directory / "events" / part.configuration / f"{part.file.replace('/', '.')}.jsonl"
