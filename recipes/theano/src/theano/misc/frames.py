"""Extraction of stack traces for variables and nodes, with a cache of frames."""

from __future__ import annotations

import linecache
import sys
from types import CodeType, FrameType
from typing import Any

from theano.misc import frames_ext

Frame = tuple[str, int, str, "str | None"]
# Maps a code object and the position of an instruction in it, as an integer, to the frame, to
# linecache's entry for the file at the time when the frame was cached, and to the code object. The
# reference to the code object keeps its address valid.
_frames: dict[int, tuple[Frame, Any, CodeType]] = {}
# The largest number of cached frames, and of cached results of is_skipped. A program can make new
# code objects without end, for example with exec.
MAX_FRAMES = 10000


class SkippedFiles(dict[str, bool]):
    """A cache of is_skipped: maps the name of a file to whether it belongs to Theano."""

    def __init__(self, skips: tuple[str, ...]) -> None:
        super().__init__()
        self.skips = skips

    def __missing__(self, filename: str) -> bool:
        if len(self) >= MAX_FRAMES:
            self.clear()
        skipped = self[filename] = is_skipped(filename, self.skips)
        return skipped


_skipped_files: dict[tuple[str, ...], SkippedFiles] = {}


def extract_frames(frame: FrameType, limit: int | None, skips: tuple[str, ...]) -> list[Frame]:
    """Return (file, line number, function, line) of a frame and its callers, outermost first.

    Args:
        frame: the innermost frame.
        limit: the largest number of frames; None means all.
        skips: parts of the names of Theano's files, see is_skipped. The innermost frames are
            omitted, up to the first frame of another file.
    """
    if limit == 0:
        return []
    skipped_files = _skipped_files.get(skips)
    if skipped_files is None:
        skipped_files = _skipped_files[skips] = SkippedFiles(skips)
    return frames_ext.describe_frames(
        frame,
        sys.maxsize if limit is None else limit,
        skipped_files,
        _frames,
        # If a file has changed, linecache replaces its entry when a traceback is printed. Then
        # describe_frames calls read_frame again.
        linecache.cache,
        read_frame,
    )


def read_frame(key: int, code: CodeType, lineno: int, scope: dict[str, Any]) -> Frame:
    """Read the source line of a frame, and cache the frame.

    Args:
        key: the frame's key in the cache.
        code: the code object.
        lineno: the number of the line.
        scope: the global variables, which linecache needs to find the source of a module in an
            archive.
    """
    line = linecache.getline(code.co_filename, lineno, scope)
    described = (code.co_filename, lineno, code.co_name, line.strip() or None)
    if len(_frames) >= MAX_FRAMES:
        _frames.clear()
    _frames[key] = (described, linecache.cache.get(code.co_filename), code)
    return described


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
