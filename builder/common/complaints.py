"""Of a failed build's log, the lines that matter."""

from __future__ import annotations

import re
from collections.abc import Sequence

# How many lines are shown, how many before the first complaint, and how much of one.
SHOWN, BEFORE, WIDEST = 10, 2, 200
# What compilers, linkers, ninja and make say of a failure; with make -j other jobs then go on for
# a while, and whoever called them complains at the end.
COMPLAINT = re.compile(
    r":\d+: ((fatal|internal compiler) )?error: |^f951: |: undefined reference to "
    r"|^FAILED: |: cannot find -l|^CMake Error|: error: \S|^(Fatal |[\w.]*)Error: |^E  "
    r"|^BuildFailed: "
)
# With this a shell shows what it will run.
TRACE = "+ "
# Where the engine begins to tell that a script failed, and where it ran: nothing of why.
EPILOGUE = re.compile(r"^Script failed with status ")
# How far from the end it is looked for.
FAR = 2000
SEQUENCE = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|.)")


def plain(line: str) -> str:
    """A line without what would move a terminal's cursor, or colour it."""
    text = SEQUENCE.sub("", line).expandtabs(4)
    return "".join(letter for letter in text if letter.isprintable()).rstrip()


def first(lines: Sequence[str]) -> int | None:
    """The number of the line that tells why a build failed, if one does."""
    for number in range(max(0, len(lines) - FAR), len(lines)):
        if COMPLAINT.search(lines[number]) and not lines[number].startswith(TRACE):
            return number
    return None


def reason(log: str) -> str:
    """Why a build failed, in one line; empty where its log is."""
    lines = _lines(log)
    found = first(lines)
    said = [line for line in lines if not line.startswith(TRACE)] or lines
    return _short(said[-1] if found is None else lines[found]) if lines else ""


def matter(log: str) -> list[str]:
    """The first complaint in a log, with what is around it; else its last lines."""
    lines = _lines(log)
    found = first(lines)
    begin = len(lines) - SHOWN if found is None else min(found - BEFORE, len(lines) - SHOWN)
    return [_short(line) for line in lines[max(0, begin) : max(0, begin) + SHOWN]]


def _lines(log: str) -> list[str]:
    lines = [text for line in log.splitlines() if (text := plain(line))]
    ends = (number for number, line in enumerate(lines) if EPILOGUE.match(line))
    return lines[: next(ends, len(lines))] or lines


def _short(line: str) -> str:
    return line if len(line) <= WIDEST else f"{line[: WIDEST - 3]}..."
