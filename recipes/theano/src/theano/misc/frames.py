"""The frames of a stack that traces begin with."""

from __future__ import annotations

import functools


@functools.cache
def is_skipped(filename: str, skips: tuple[str, ...]) -> bool:
    """Return whether a frame is left out before the first that is not.

    Args:
        filename: its file. One of a test is not left out, for the trace would be lost.
        skips: what the names of files have that are.
    """
    return "tests" not in filename and any(part in filename for part in skips)
