"""Extraction of stack traces for variables and nodes, with a cache of frames."""

from __future__ import annotations

import functools
import linecache
from types import CodeType, FrameType
from typing import Any

Frame = tuple[str, int, str, "str | None"]
# Maps the id of a code object and the position of an instruction in it to the frame, to linecache's
# entry for the file at the time when the frame was cached, and to the code object. The reference to
# the code object keeps the id valid.
_frames: dict[tuple[int, int], tuple[Frame, Any, CodeType]] = {}
# The largest number of cached frames, and of cached results of is_skipped. A program can make new
# code objects without end, for example with exec.
MAX_FRAMES = 10000


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
        # Do not use the line number as key: Python searches the code object's line table for it,
        # which takes longer than the rest of this loop.
        key = (id(frame.f_code), frame.f_lasti)
        cached = _frames.get(key)
        # If a file has changed, linecache replaces its entry when a traceback is printed. Then read
        # the line again.
        if cached is None or cached[1] is not linecache.cache.get(cached[0][0]):
            if len(_frames) >= MAX_FRAMES:
                _frames.clear()
            cached = _frames[key] = (*read_frame(frame), frame.f_code)
        frames.append(cached[0])
        frame = frame.f_back
    frames.reverse()
    return frames


def read_frame(frame: FrameType) -> tuple[Frame, Any]:
    """Return (file, line number, function, line) of a frame, and linecache's entry for the file."""
    code = frame.f_code
    line = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals)
    described = (code.co_filename, frame.f_lineno, code.co_name, line.strip() or None)
    return described, linecache.cache.get(code.co_filename)


@functools.lru_cache(MAX_FRAMES)
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
