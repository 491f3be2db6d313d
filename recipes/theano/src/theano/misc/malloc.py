"""The C library's memory."""

from __future__ import annotations

import ctypes
import os


def keep_freed(megabytes: int) -> None:
    """Have the C library keep up to so many MiB of freed memory, unless the user tuned it."""
    tuned = [name for name in os.environ if name.startswith("MALLOC_")]
    if tuned or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        # Both are an int's number of bytes, by malloc.h.
        m_trim_threshold, m_mmap_threshold = -1, -3
        kept = min(megabytes << 20, 2**31 - 1)
        mallopt(m_trim_threshold, kept)
        mallopt(m_mmap_threshold, kept)
