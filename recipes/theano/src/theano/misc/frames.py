"""Extraction of stack traces for variables and nodes, with a cache of frames."""

from __future__ import annotations

import functools
import linecache
from types import FrameType
from typing import Any

Frame = tuple[str, int, str, "str | None"]
# Maps (file, line number, function) to the frame, and to linecache's entry for the file at the time
# when the frame was cached.
_frames: dict[tuple[str, int, str], tuple[Frame, Any]] = {}


def extract_frames(
    frame: FrameType | None, limit: int | None, skips: tuple[str, ...]
) -> list[Frame]:
    """Return (file, line number, function, line) of a frame and its callers, outermost first.

    Args:
        frame: the innermost frame.
        limit: the largest number of frames; None means all.
        skips: parts of the names of Theano's files, see is_skipped. The innermost frames are
            omitted, up to the first frame of another file.
    """
    if limit == 0:
        return []
    while frame is not None and is_skipped(frame.f_code.co_filename, skips):
        frame = frame.f_back
    frames: list[Frame] = []
    while frame is not None and (limit is None or len(frames) < limit):
        code = frame.f_code
        key = (code.co_filename, frame.f_lineno, code.co_name)
        cached = _frames.get(key)
        # If a file has changed, linecache replaces its entry when a traceback is printed. Then read
        # the line again.
        if cached is None or cached[1] is not linecache.cache.get(key[0]):
            line = linecache.getline(key[0], key[1], frame.f_globals)
            cached = _frames[key] = ((*key, line.strip() or None), linecache.cache.get(key[0]))
        frames.append(cached[0])
        frame = frame.f_back
    frames.reverse()
    return frames


@functools.cache
def is_skipped(filename: str, skips: tuple[str, ...]) -> bool:
    """Return whether a file belongs to Theano: a trace must not end with frames of such a file.

    A trace ends with the line of the program that called Theano. A file whose name contains "tests"
    is such a program. Otherwise, a variable that one of Theano's tests creates would have an empty
    trace.

    Args:
        filename: the name of the file.
        skips: parts of the names of Theano's files, such as "theano/tensor/".
    """
    return "tests" not in filename and any(part in filename for part in skips)
