"""Thresholds of the C library's malloc for returning freed memory to the system."""

from __future__ import annotations

import ctypes
import os


def keep_freed(megabytes: int) -> None:
    """Keep up to `megabytes` MiB of freed memory in the process, unless the user tuned malloc."""
    tuned = [name for name in os.environ if name.startswith("MALLOC_")]
    if tuned or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        # The constants of malloc.h; both values are bytes, as an int.
        m_trim_threshold, m_mmap_threshold = -1, -3
        n_bytes = min(megabytes << 20, 2**31 - 1)
        mallopt(m_trim_threshold, n_bytes)
        mallopt(m_mmap_threshold, n_bytes)
