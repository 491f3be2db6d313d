"""The frames of a stack, as the traces of variables and nodes have them."""

from __future__ import annotations

import functools
import linecache
from types import FrameType
from typing import Any

Frame = tuple[str, int, str, "str | None"]
# By file, number of a line, and function: the frame, and what linecache had of the file.
_known: dict[tuple[str, int, str], tuple[Frame, Any]] = {}


def extract(frame: FrameType | None, limit: int | None, skips: tuple[str, ...]) -> list[Frame]:
    """Return (file, line's number, function, line) of a frame and its callers, the outermost first.

    Args:
        limit: how many at most; None, all.
        skips: the innermost whose files' names have one of these are left out.
    """
    if limit == 0:
        return []
    while frame is not None and is_skipped(frame.f_code.co_filename, skips):
        frame = frame.f_back
    found: list[Frame] = []
    while frame is not None and (limit is None or len(found) < limit):
        code = frame.f_code
        key = (code.co_filename, frame.f_lineno, code.co_name)
        known = _known.get(key)
        # What reads a file again, as a printed exception does, replaces that of linecache.
        if known is None or known[1] is not linecache.cache.get(key[0]):
            line = linecache.getline(key[0], key[1], frame.f_globals)
            known = _known[key] = ((*key, line.strip() or None), linecache.cache.get(key[0]))
        found.append(known[0])
        frame = frame.f_back
    found.reverse()
    return found


@functools.cache
def is_skipped(filename: str, skips: tuple[str, ...]) -> bool:
    """Return whether a frame is left out before the first that is not.

    Args:
        filename: its file. One of a test is not left out, for the trace would be lost.
        skips: what the names of files have that are.
    """
    return "tests" not in filename and any(part in filename for part in skips)
