"""Extraction of stack traces for variables and nodes, with a cache of frames."""

from __future__ import annotations

import linecache
import sys
from types import CodeType, FrameType
from typing import Any

from theano.misc import frames_ext

Frame = tuple[str, int, str, "str | None"]
# Maps the address of an instruction to a tuple: the frame, linecache's entry for its file when the
# frame was cached, and the code object. The reference to the code object keeps the address valid.
_frames: dict[int, tuple[Frame, Any, CodeType]] = {}
# Maps the `skips` of extract_frames to a cache of is_skipped by file name.
_skipped_files: dict[tuple[str, ...], dict[str, bool]] = {}
# The largest number of cached frames, and of cached results of is_skipped. A program can make new
# code objects without end, for example with exec.
MAX_FRAMES = 10000


def extract_frames(innermost: FrameType, limit: int | None, skips: tuple[str, ...]) -> list[Frame]:
    """Return (file, line number, function, line) of a frame and its callers, outermost first.

    Args:
        innermost: the innermost frame.
        limit: the largest number of frames; None means all.
        skips: parts of the names of Theano's files, see is_skipped. The innermost frames are
            omitted, up to the first frame of another file.
    """
    if limit == 0:
        return []
    limit = sys.maxsize if limit is None else limit
    skipped = _skipped_files.setdefault(skips, {})
    cached = frames_ext.find_frames(innermost, limit, skipped, _frames, linecache.cache)
    if cached is not None:
        return cached
    frame: FrameType | None = innermost
    while frame is not None and is_skipped(frame.f_code.co_filename, skips, skipped):
        frame = frame.f_back
    frames: list[Frame] = []
    while frame is not None and len(frames) < limit:
        frames.append(read_frame(frame))
        frame = frame.f_back
    frames.reverse()
    return frames


def read_frame(frame: FrameType) -> Frame:
    """Return (file, line number, function, line) of a frame, and cache it."""
    code = frame.f_code
    # Do not use the line number as key: Python searches the code object's line table for it.
    key = id(code) + frame.f_lasti
    cached = _frames.get(key)
    # If a file has changed, linecache replaces its entry when a traceback is printed. Then read the
    # line again.
    if cached is None or cached[1] is not linecache.cache.get(code.co_filename):
        line = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals)
        described = (code.co_filename, frame.f_lineno, code.co_name, line.strip() or None)
        if len(_frames) >= MAX_FRAMES:
            _frames.clear()
        cached = _frames[key] = described, linecache.cache.get(code.co_filename), code
    return cached[0]


def is_skipped(filename: str, skips: tuple[str, ...], cache: dict[str, bool]) -> bool:
    """Return whether a file belongs to Theano: a trace must not end with frames of such a file.

    A trace ends with the line of the program that called Theano. A file whose name contains "tests"
    is such a program. Otherwise, a variable that one of Theano's tests creates would have an empty
    trace.

    Args:
        filename: the name of the file.
        skips: parts of the names of Theano's files, such as "theano/tensor/".
        cache: maps the names of files to earlier results for these `skips`.
    """
    if filename not in cache:
        if len(cache) >= MAX_FRAMES:
            cache.clear()
        cache[filename] = "tests" not in filename and any(part in filename for part in skips)
    return cache[filename]
