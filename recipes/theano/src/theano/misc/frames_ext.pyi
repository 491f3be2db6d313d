# The extension module of frames_ext.c, which looks up the frames of a stack trace in caches.

from types import CodeType, FrameType
from typing import Any

from theano.misc.frames import Frame

def find_frames(
    innermost: FrameType,
    limit: int,
    skipped: dict[str, bool],
    known: dict[int, tuple[Frame, Any, CodeType]],
    lines: dict[str, Any],
    /,
) -> list[Frame] | None: ...
