"""Thresholds above which the C library's malloc returns freed memory to the system."""

from __future__ import annotations

import ctypes
import os


def keep_freed(megabytes: int) -> None:
    """Let malloc keep up to `megabytes` MiB of freed memory in the process.

    Do nothing if an environment variable (MALLOC_*, GLIBC_TUNABLES) tunes malloc, or if the C
    library has no mallopt.
    """
    variables = [name for name in os.environ if name.startswith("MALLOC_")]
    if variables or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h. Both take a number of bytes as an int.
        m_trim_threshold, m_mmap_threshold = -1, -3
        n_bytes = min(megabytes << 20, 2**31 - 1)
        mallopt(m_trim_threshold, n_bytes)
        mallopt(m_mmap_threshold, n_bytes)
