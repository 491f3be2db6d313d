# The extension module of frames_ext.c, which walks over the frames of a stack trace.

from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from theano.misc.frames import Frame

def describe_frames(
    innermost: FrameType,
    limit: int,
    skipped: dict[str, bool],
    known: dict[int, tuple[Frame, Any, CodeType]],
    lines: dict[str, Any],
    describe: Callable[[int, CodeType, int, dict[str, Any]], Frame],
    /,
) -> list[Frame]: ...
