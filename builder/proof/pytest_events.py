"""What happened to tests so far, as conformance/theano_events.py writes it down."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.proof.pytest_results import Outcome, Results


@dataclass(frozen=True)
class Part:
    """The tests ``[first::step]`` of a file, under a configuration's flags."""

    configuration: str
    flags: str
    file: str
    first: int
    step: int

    def __str__(self) -> str:
        return f"{self.configuration} {self.file}"


@dataclass(frozen=True)
class Events:
    """What is known of a part."""

    collected: tuple[str, ...]
    outcomes: Mapping[str, Outcome]
    # Started and not ended.
    open: str
    complete: bool


def read(directory: Path, part: Part) -> Events:
    """Read what happened so far."""
    collected: list[str] | None = None
    outcomes: dict[str, Outcome] = {}
    started = ""
    file = place(directory, part)
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        event = json.loads(line)
        if "collected" in event:
            collected = event["collected"]
        elif "started" in event:
            started = event["started"]
        else:
            test = event.pop("id")
            outcomes[test] = Outcome(**event)
    wanted = set(() if collected is None else collected[part.first :: part.step])
    return Events(
        collected=tuple(collected or ()),
        outcomes=outcomes,
        open="" if started in outcomes else started,
        complete=collected is not None and wanted <= set(outcomes),
    )


def results(directory: Path, parts: Sequence[Part]) -> Results:
    """What is known of all parts."""
    found = {part: read(directory, part) for part in parts}
    return Results(
        outcomes={
            (part.configuration, test): outcome
            for part, known in found.items()
            for test, outcome in known.outcomes.items()
        },
        collected={
            (part.configuration, part.file): known.collected for part, known in found.items()
        },
    )


def place(directory: Path, part: Part) -> Path:
    """The file of a part's events, below the directory of a run."""
    return directory / "events" / part.configuration / f"{part.file.replace('/', '.')}.jsonl"
