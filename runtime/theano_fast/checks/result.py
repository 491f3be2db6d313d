"""What a check says, and what is recorded of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from theano_fast.stack import Stack

# A failure with one cause can show in a hundred places; the first few name it.
SHOWN = 5


@dataclass(frozen=True)
class Options:
    """What every check is given: the stack to assert, the sizes to run, the device if named."""

    stack: Stack
    full: bool = False
    device: str = ""


@dataclass(frozen=True)
class Result:
    """A check's answer: it passed unless it names failures or why it does not apply.

    summary is one line for the table, measurements go into the report (JSON values; seconds and
    bytes unless a name says otherwise), details are lines shown below the table.
    """

    summary: str = ""
    failures: tuple[str, ...] = ()
    skipped: str = ""
    measurements: Mapping[str, Any] = field(default_factory=dict)
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """A check that was run: its result as it is reported."""

    name: str
    status: str
    seconds: float
    message: str
    measurements: Mapping[str, Any] = field(default_factory=dict)
    details: tuple[str, ...] = ()
    traceback: str = ""


def record(name: str, seconds: float, result: Result, traceback: str = "") -> Record:
    """Make the record of a result; a check with failures failed, whatever else it says."""
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
