"""What a compiledir keeps: how large it is, when it was used, and the removal of some of it.

Another process may be about to load what is removed: it compiles that again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from theano import config
from theano.gof import compilelock, graph_cache
from theano.gof.module_files import A_DAY


class Kept(NamedTuple):
    """A module's directory or a graph's file: its size in bytes, and when it was last used."""

    path: Path
    size: int
    used: float


def modules(compiledir: str | Path) -> list[Kept]:
    """Return the modules of a compiledir, but for those that another process removes."""
    found = []
    for key in Path(compiledir).glob("tmp*/key.pkl"):
        try:
            statuses = [file.stat() for file in key.parent.iterdir()]
            used = max(file.stat().st_atime for file in key.parent.glob("*.so"))
        except (OSError, ValueError):
            continue
        # Modules that g++ compiled in one run are one library.
        size = sum(status.st_size // status.st_nlink for status in statuses)
        found.append(Kept(key.parent, size, used))
    return found


def graphs(compiledir: str | Path) -> list[Kept]:
    """Return the optimized graphs of a compiledir."""
    found = []
    for file in Path(compiledir, graph_cache.DIRECTORY).glob("*"):
        try:
            status = file.stat()
        except OSError:
            continue
        found.append(Kept(file, status.st_size, status.st_mtime))
    return found


def oldest(kept: Iterable[Kept], limit: int) -> list[Kept]:
    """Return what must go for no more than `limit` bytes to stay: what was used least recently.

    What was used within a day stays in any case: file systems tell no better.
    """
    total = 0
    chosen = []
    for entry in sorted(kept, key=lambda entry: entry.used, reverse=True):
        total += entry.size
        if total > limit and time.time() - entry.used > A_DAY:
            chosen.append(entry)
    return chosen


def remove(kept: Iterable[Kept]) -> None:
    """Remove modules and graphs of the process's compiledir."""
    with compilelock.lock_ctx():
        for entry in kept:
            if entry.path.is_dir():
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                entry.path.unlink(missing_ok=True)


def shrink(compiledir: str) -> None:
    """Remove what makes the process's compiledir larger than `cmodule.max_size`, if that is set."""
    if config.cmodule.max_size:
        limit = config.cmodule.max_size * 10**6
        if chosen := oldest(modules(compiledir) + graphs(compiledir), limit):
            remove(chosen)
