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
    """The compile cache could not be exported; the message has the reason."""


def describe_caches() -> str:
    """Describe the compiledir and each seed cache in use.

    Theano ignores an untrusted seed cache, and logs a warning with the reason.
    """
    from theano import config  # noqa: PLC0415 (the import takes a second)
    from theano.misc import compiledirs  # noqa: PLC0415

    return "\n".join(map(describe, [config.compiledir, *compiledirs.list_seeds()]))


def describe(compiledir: str | Path) -> str:
    """Return the path of a compiledir, and the number, size and last use of modules and graphs."""
    from theano.gof import cache_files  # noqa: PLC0415
    from theano.gof.module_files import A_DAY  # noqa: PLC0415

    lines = [str(compiledir)]
    for name, entries in (
        ("modules", cache_files.list_modules(compiledir)),
        ("graphs", cache_files.list_graphs(compiledir)),
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
        program: the program's file, then its arguments.
        seconds: the timeout in seconds; None waits until the program ends. At the timeout, the
            program gets SIGTERM, and 10 s later SIGKILL.

    Returns:
        the program's exit code (0 after a timeout), and a description of the cache.
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
        max_size: the maximum total size, in MB, of the entries to keep. Entries that were used
            within a day are kept even if they are larger. None removes all entries.
    """
    from theano import config  # noqa: PLC0415
    from theano.gof import cache_files  # noqa: PLC0415

    entries = cache_files.list_modules(config.compiledir) + cache_files.list_graphs(
        config.compiledir
    )
    oldest = entries if max_size is None else cache_files.select_oldest(entries, max_size * MB)
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
    entries = cache_files.list_modules(compiledir) + cache_files.list_graphs(compiledir)
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
    """Make root the owner of an archive's member, and return the member.

    If root unpacks the archive, the files belong to root. Otherwise they belong to the user who
    unpacks the archive. Theano loads no files of other owners.
    """
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
