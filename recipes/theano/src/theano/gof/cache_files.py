"""Removal of the least recently used modules and optimized graphs from a compiledir.

If a process needs a removed module, it compiles the module again.
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


class CacheFile(NamedTuple):
    """The directory of a module or the file of an optimized graph.

    Attributes:
        path: the path of the directory or file.
        size: the size in bytes.
        used: the time of last use, in seconds since 1970.
    """

    path: Path
    size: int
    used: float


def list_modules(compiledir: str | Path) -> list[CacheFile]:
    """List the modules of a compiledir; skip modules that another process is removing."""
    modules = []
    for key in Path(compiledir).glob("tmp*/key.pkl"):
        try:
            statuses = [file.stat() for file in key.parent.iterdir()]
            # max raises ValueError if the directory has no library.
            used = max(file.stat().st_atime for file in key.parent.glob("*.so"))
        except (OSError, ValueError):
            continue
        # Modules that g++ compiled in one run share a library through hard links: count each
        # module's part.
        size = sum(status.st_size // status.st_nlink for status in statuses)
        modules.append(CacheFile(key.parent, size, used))
    return modules


def list_graphs(compiledir: str | Path) -> list[CacheFile]:
    """List the optimized graphs of a compiledir."""
    graphs = []
    for file in Path(compiledir, graph_cache.DIRECTORY).glob("*"):
        try:
            status = file.stat()
        except OSError:
            continue
        graphs.append(CacheFile(file, status.st_size, status.st_mtime))
    return graphs


def select_oldest(files: Iterable[CacheFile], limit: int) -> list[CacheFile]:
    """Return the least recently used files whose removal leaves at most `limit` bytes.

    Files that were used within the last day are not returned, because a file system may update the
    time of access only once per day. Therefore more than `limit` bytes can remain.
    """
    total = 0
    removable = []
    for entry in sorted(files, key=lambda entry: entry.used, reverse=True):
        total += entry.size
        if total > limit and time.time() - entry.used > A_DAY:
            removable.append(entry)
    return removable


def remove(files: Iterable[CacheFile]) -> None:
    """Remove modules and graphs from this process's compiledir."""
    with compilelock.lock_ctx():
        for entry in files:
            if entry.path.is_dir():
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                entry.path.unlink(missing_ok=True)


def shrink_compiledir(compiledir: str) -> None:
    """Remove the least recently used files if a compiledir exceeds `cmodule.max_size` MB.

    Args:
        compiledir: this process's compiledir.
    """
    if config.cmodule.max_size:
        limit = config.cmodule.max_size * 10**6
        if files := select_oldest(list_modules(compiledir) + list_graphs(compiledir), limit):
            remove(files)
