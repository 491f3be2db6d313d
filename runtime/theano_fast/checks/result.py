"""Define the options, results and records of checks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from theano_fast.stack import Stack

# The largest number of failures in a message. One cause can lead to hundreds of failures.
SHOWN = 5


@dataclass(frozen=True)
class Options:
    """The options of all checks.

    ``stack`` is the environment's stack. ``full`` adds slow checks of full size. ``device`` is a
    GPU, such as "cuda0"; "" is the first GPU, if there is one.
    """

    stack: Stack
    full: bool = False
    device: str = ""


@dataclass(frozen=True)
class Result:
    """The result of a check. The check passed if ``failures`` and ``skipped`` are empty.

    ``summary`` is the check's line in the table. ``measurements`` are JSON values for the report,
    in seconds or bytes unless their names have another unit. ``details`` are lines below the
    table.
    """

    summary: str = ""
    failures: tuple[str, ...] = ()
    skipped: str = ""
    measurements: Mapping[str, Any] = field(default_factory=dict)
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """A check's entry in the report; ``status`` is passed, failed or skipped."""

    name: str
    status: str
    seconds: float
    message: str
    measurements: Mapping[str, Any] = field(default_factory=dict)
    details: tuple[str, ...] = ()
    traceback: str = ""


def record(name: str, seconds: float, result: Result, traceback: str = "") -> Record:
    """Convert a result to a record; a result with failures is failed, even if also skipped."""
    if result.failures:
        more = f"; and {len(result.failures) - SHOWN} more" if result.failures[SHOWN:] else ""
        status, message = "failed", "; ".join(result.failures[:SHOWN]) + more
    elif result.skipped:
        status, message = "skipped", result.skipped
    else:
        status, message = "passed", result.summary
    return Record(
        name, status, seconds, message, dict(result.measurements), result.details, traceback
    )
