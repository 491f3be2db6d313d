"""Define the options, results and records of checks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from theano_fast.stack import Stack

# Show this number of failures in the table. One cause can have hundreds of failures.
SHOWN = 5


@dataclass(frozen=True)
class Options:
    """The options of all checks: the expected stack, whether to run full sizes, the GPU's name."""

    stack: Stack
    full: bool = False
    device: str = ""


@dataclass(frozen=True)
class Result:
    """The result of a check: passed, unless it has failures or a reason why it was skipped.

    ``summary`` is a line for the table. ``measurements`` are JSON values for the report, in seconds
    or bytes unless their name has another unit. ``details`` are lines below the table.
    """

    summary: str = ""
    failures: tuple[str, ...] = ()
    skipped: str = ""
    measurements: Mapping[str, Any] = field(default_factory=dict)
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """The result of a check in the form of the report."""

    name: str
    status: str
    seconds: float
    message: str
    measurements: Mapping[str, Any] = field(default_factory=dict)
    details: tuple[str, ...] = ()
    traceback: str = ""


def record(name: str, seconds: float, result: Result, traceback: str = "") -> Record:
    """Make the record of a result; a check with failures failed, even if it was skipped."""
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
