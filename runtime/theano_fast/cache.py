"""``theano-fast cache``: what Theano keeps compiled for this environment on this kind of node."""

import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

MB = 10**6


class CacheError(Exception):
    """A command on the cache cannot do what it is asked for; the message says why."""


def info() -> str:
    """Return what the compiledir and the seeds have, and why a seed is passed over."""
    from theano import config  # noqa: PLC0415 (it takes a second)
    from theano.misc import compiledirs  # noqa: PLC0415

    return "\n".join(map(describe, [config.compiledir, *compiledirs.seeds()]))


def describe(compiledir: str | Path) -> str:
    """Return how much a compiledir has, and when that was used last, in lines."""
    from theano.gof import cache_files  # noqa: PLC0415
    from theano.gof.module_files import A_DAY  # noqa: PLC0415

    lines = [str(compiledir)]
    for name, kept in (
        ("modules", cache_files.modules(compiledir)),
        ("graphs", cache_files.graphs(compiledir)),
    ):
        size = sum(entry.size for entry in kept) / MB
        line = f"  {name:<8}{len(kept):>6}{size:>9.1f} MB"
        if kept:
            days = (time.time() - max(entry.used for entry in kept)) / A_DAY
            line += f", used last {days:.0f} days ago" if days > 1 else ", used within a day"
        lines.append(line)
    return "\n".join(lines)


def warm(program: Sequence[str], seconds: float | None) -> tuple[int, str]:
    """Run a program, so that others like it find compiled what it needs.

    Args:
        program: the file, and its arguments.
        seconds: after how many it is ended, if it has not ended itself.

    Returns:
        its exit status, 0 where it was ended here, and what the compiledir has then.
    """
    with subprocess.Popen([sys.executable, *program]) as process:
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
            status = 0
    return status, info()


def clean(max_size: int | None) -> str:
    """Remove from the compiledir what was used least recently, or everything; returns what.

    Args:
        max_size: in MB, what may stay; None to remove all.
    """
    from theano import config  # noqa: PLC0415
    from theano.gof import cache_files  # noqa: PLC0415

    kept = cache_files.modules(config.compiledir) + cache_files.graphs(config.compiledir)
    chosen = kept if max_size is None else cache_files.oldest(kept, max_size * MB)
    cache_files.remove(chosen)
    total, gone = (sum(entry.size for entry in entries) / MB for entries in (kept, chosen))
    line = f"{config.compiledir}: removed {gone:.1f} of {total:.1f} MB"
    if max_size is not None and total - gone > max_size:
        line += "; the rest was used within a day"
    return line


def export(file: Path) -> str:
    """Write what the compiledir has as an archive, which unpacks to a seed; returns what was done.

    Raises:
        CacheError: there is nothing, or the file cannot be written.
    """
    from theano import config  # noqa: PLC0415
    from theano.gof import cache_files  # noqa: PLC0415

    compiledir = Path(config.compiledir)
    kept = cache_files.modules(compiledir) + cache_files.graphs(compiledir)
    if not kept:
        raise CacheError(f"{compiledir} has nothing to export: theano-fast cache warm PROGRAM")
    part = file.with_name(f".{file.name}.part")
    try:
        with tarfile.open(part, "w:gz") as tar:
            for entry in kept:
                tar.add(entry.path, entry.path.relative_to(compiledir.parent), filter=anyones)
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise CacheError(f"{file} cannot be written: {error}") from error
    return f"{file}: {len(kept)} modules and graphs, {file.stat().st_size / MB:.1f} MB"


def anyones(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Have a member belong to whoever unpacks it: only that user's, and root's, is loaded."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
