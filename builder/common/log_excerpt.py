"""Find the lines of a failed build's log that explain the failure."""

from __future__ import annotations

import re
from collections.abc import Sequence

EXCERPT_LINES = 10
# Lines shown before the first error.
CONTEXT_LINES = 2
MAX_LINE_LENGTH = 200
# Error messages of compilers, linkers, CMake, ninja, make and Python. The first match in a log
# explains the failure. Later matches do not: with make -j, other jobs continue after the failure,
# and each parent make reports the failure again.
ERROR = re.compile(
    r":\d+: ((fatal|internal compiler) )?error: |^f951: |: undefined reference to "
    r"|^FAILED: |: cannot find -l|^CMake Error|: error: \S|^(Fatal |[\w.]*)Error: |^E  "
    r"|^BuildFailed: "
)
# A shell with the option -x (trace) prints this text before each command.
TRACE_PREFIX = "+ "
# The first line of the engine's report about a failed build script. The report names the script's
# directory, but not the reason of the failure.
ENGINE_REPORT = re.compile(r"^Script failed with status ")
# The number of lines at the end of a log that are searched for an error.
SEARCHED_LINES = 2000
CONTROL_SEQUENCE = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|.)")


def strip_control_sequences(line: str) -> str:
    """Remove terminal control sequences and unprintable characters; expand tabs to 4 columns."""
    text = CONTROL_SEQUENCE.sub("", line).expandtabs(4)
    return "".join(character for character in text if character.isprintable()).rstrip()


def find_error(lines: Sequence[str]) -> int | None:
    """Return the index of the first error among the last SEARCHED_LINES lines, or None."""
    for index in range(max(0, len(lines) - SEARCHED_LINES), len(lines)):
        if ERROR.search(lines[index]) and not lines[index].startswith(TRACE_PREFIX):
            return index
    return None


def summarize_failure(log: str) -> str:
    """Return the line of a log that explains the failure.

    Return the first error. Without an error, return the last line that is not a traced command
    (TRACE_PREFIX). Return "" for an empty log.
    """
    lines = _read_lines(log)
    if not lines:
        return ""
    error = find_error(lines)
    if error is not None:
        return _shorten(lines[error])
    output = [line for line in lines if not line.startswith(TRACE_PREFIX)] or lines
    return _shorten(output[-1])


def extract_excerpt(log: str) -> list[str]:
    """Return at most EXCERPT_LINES lines of a log, around its first error.

    If the log has no error, return its last lines.
    """
    lines = _read_lines(log)
    error = find_error(lines)
    last_start = max(0, len(lines) - EXCERPT_LINES)
    start = last_start if error is None else max(0, min(error - CONTEXT_LINES, last_start))
    return [_shorten(line) for line in lines[start : start + EXCERPT_LINES]]


def _read_lines(log: str) -> list[str]:
    """Split a log into lines without control sequences; drop empty lines and the engine's report.

    If nothing precedes the engine's report, keep the report.
    """
    lines = [text for line in log.splitlines() if (text := strip_control_sequences(line))]
    reports = (index for index, line in enumerate(lines) if ENGINE_REPORT.match(line))
    return lines[: next(reports, len(lines))] or lines


def _shorten(line: str) -> str:
    return line if len(line) <= MAX_LINE_LENGTH else f"{line[: MAX_LINE_LENGTH - 3]}..."
