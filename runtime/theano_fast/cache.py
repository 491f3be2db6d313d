"""Implement ``theano-fast cache``: show, fill, clean and export the compile cache."""

import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

MB = 10**6


class CacheError(Exception):
    """A command of the cache failed; the message has the reason."""


def describe_caches() -> str:
    """Describe the compiledir and each seed cache, or why a seed cache is ignored."""
    from theano import config  # noqa: PLC0415 (the import takes a second)
    from theano.misc import compiledirs  # noqa: PLC0415

    return "\n".join(map(describe, [config.compiledir, *compiledirs.seeds()]))


def describe(compiledir: str | Path) -> str:
    """Describe a compiledir in lines: its modules and graphs, their size, and their last use."""
    from theano.gof import cache_files  # noqa: PLC0415
    from theano.gof.module_files import A_DAY  # noqa: PLC0415

    lines = [str(compiledir)]
    for name, entries in (
        ("modules", cache_files.modules(compiledir)),
        ("graphs", cache_files.graphs(compiledir)),
    ):
        size = sum(entry.size for entry in entries) / MB
        line = f"  {name:<8}{len(entries):>6}{size:>9.1f} MB"
        if entries:
            days = (time.time() - max(entry.used for entry in entries)) / A_DAY
            line += f", last used {days:.0f} days ago" if days > 1 else ", used within a day"
        lines.append(line)
    return "\n".join(lines)


def warm(program: Sequence[str], seconds: float | None) -> tuple[int, str]:
    """Run a program, so that later runs find their modules and graphs in the cache.

    Args:
        program: the file, and its arguments.
        seconds: stop the program after this time; None lets it end.

    Returns:
        the program's exit status (0 if it was stopped), and a description of the cache.
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
    return status, describe_caches()


def clean(max_size: int | None) -> str:
    """Remove the least recently used entries of the compiledir, or all entries; return a message.

    Args:
        max_size: MB to keep, and all entries of the last day; None removes all entries.
    """
    from theano import config  # noqa: PLC0415
    from theano.gof import cache_files  # noqa: PLC0415

    entries = cache_files.modules(config.compiledir) + cache_files.graphs(config.compiledir)
    oldest = entries if max_size is None else cache_files.oldest(entries, max_size * MB)
    cache_files.remove(oldest)
    total, removed = (sum(entry.size for entry in group) / MB for group in (entries, oldest))
    line = f"{config.compiledir}: removed {removed:.1f} of {total:.1f} MB"
    if max_size is not None and total - removed > max_size:
        line += "; kept the entries that were used within a day"
    return line


def export(file: Path) -> str:
    """Write the compiledir to an archive that unpacks to a seed cache; return a message.

    Raises:
        CacheError: the compiledir is empty, or the file cannot be written.
    """
    from theano import config  # noqa: PLC0415
    from theano.gof import cache_files  # noqa: PLC0415

    compiledir = Path(config.compiledir)
    entries = cache_files.modules(compiledir) + cache_files.graphs(compiledir)
    if not entries:
        raise CacheError(
            f"{compiledir} has nothing to export: fill it with theano-fast cache warm PROGRAM"
        )
    part = file.with_name(f".{file.name}.part")
    try:
        with tarfile.open(part, "w:gz") as tar:
            for entry in entries:
                tar.add(entry.path, entry.path.relative_to(compiledir.parent), filter=remove_owner)
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise CacheError(f"{file} cannot be written: {error}") from error
    return f"{file}: {len(entries)} modules and graphs, {file.stat().st_size / MB:.1f} MB"


def remove_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove a member's owner: Theano loads only files of the user who unpacks them, or of root."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
