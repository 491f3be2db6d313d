"""Source archives: find or download them; none gets in whose bytes are not the pinned ones."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from builder.common import paths
from builder.common.errors import (
    CommandFailed,
    DiskFull,
    HashMismatch,
    SourceUnavailable,
    TheanoFastError,
)
from builder.common.processes import run
from builder.source import debian, downloads
from builder.stack.recipes import Source

DOWNLOADS_AT_ONCE = 4


def sha256(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def verify(file: Path, source: Source, origin: Path | None = None) -> None:
    """Compare a file, a copy of ``origin`` if that is given, with its pin.

    Raises:
        HashMismatch: they differ; the message names the file, the expected and the actual hash.
    """
    actual = sha256(file)
    if actual != source.sha256:
        raise HashMismatch(
            f"{origin or source.file} ({file.stat().st_size} bytes) has the wrong SHA-256\n"
            f"  expected {source.sha256}\n  actual   {actual}",
            "it is truncated or another file, and was not kept: fetch it again; "
            "if it changed upstream on purpose, change the pin in its recipe",
        )


def fetch(
    sources: Iterable[Source], *, directory: Path | None = None, offline: bool = False
) -> list[Path]:
    """Put every source into the cache, and a link to it where recipes look for it.

    Args:
        sources: what to fetch.
        directory: looked into before anything is downloaded.
        offline: download nothing.

    Raises:
        SourceUnavailable: a file is nowhere to be had.
        HashMismatch: a file is there but is not the pinned one.
        DiskFull: the cache's file system has no room.
    """
    wanted = sorted(set(sources), key=lambda source: source.file)
    with ThreadPoolExecutor(DOWNLOADS_AT_ONCE) as pool:
        futures = [pool.submit(_cached, source, directory, offline) for source in wanted]
    _report([error for future in futures if (error := future.exception())])
    cached = [future.result() for future in futures]
    paths.SOURCES.mkdir(parents=True, exist_ok=True)
    for source, file in zip(wanted, cached, strict=True):
        link = paths.SOURCES / source.file
        if not (link.is_symlink() and link.readlink() == file):
            link.unlink(missing_ok=True)
            link.symlink_to(file)
    return cached


def _report(errors: Sequence[BaseException]) -> None:
    """Raise what went wrong: all of it at once, where it is sources that cannot be had."""
    unavailable = [error for error in errors if isinstance(error, SourceUnavailable)]
    others = [error for error in errors if error not in unavailable]
    if others or len(unavailable) == 1:
        raise next(iter(others or unavailable))
    if unavailable:
        texts = [str(error).partition("\n  -> ")[0] for error in unavailable]
        raise SourceUnavailable("\n".join(texts), unavailable[0].hint)


def keep(file: Path, name: str) -> Source:
    """Put a file that the user brings into the cache, as a source called by ``name`` and its hash.

    Raises:
        DiskFull: the cache's file system has no room.
    """
    digest = sha256(file)
    source = Source(f"{name}-{digest[:16]}", digest)

    def write(part: Path) -> None:
        shutil.copyfile(file, part)
        verify(part, source, file)

    if not (cached := cache_file(source)).exists():
        _place(cached, write)
    return source


def collect(files: Sequence[Path], directory: Path) -> None:
    """Copy fetched files into one directory, to be carried to another machine."""
    directory.mkdir(parents=True, exist_ok=True)
    for file in files:
        _place(directory / file.name, partial(shutil.copyfile, file))


def cache_file(source: Source) -> Path:
    """Where a source is in the cache, once it was fetched."""
    # Named by its hash: a file that is there was verified when it came.
    return paths.source_cache() / source.sha256[:16] / source.file


def _cached(source: Source, directory: Path | None, offline: bool) -> Path:
    file = cache_file(source)
    if file.exists():
        return file
    given = directory / source.file if directory else None
    if given and not given.exists():
        given = None
    if given is None and offline:
        where = f"{directory} or " if directory else ""
        raise SourceUnavailable(
            f"{source.file} is not in {where}the cache, and --offline forbids a download",
            "on a machine with a network: ./invoke fetch --stack=NAME --to=DIR; "
            "then pass that directory with --sources",
        )

    def write(part: Path) -> None:
        if given:
            shutil.copyfile(given, part)
            verify(part, source, given)
        else:
            _download(source, part)

    _place(file, write)
    return file


def _place(file: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a temporary file, then give it its name: never a half-written file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".part-")
    os.close(handle)
    part = Path(name)
    try:
        write(part)
        part.chmod(0o644)
        part.replace(file)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DiskFull(f"no room for {file}", "free some space and run again") from error
        raise
    finally:
        part.unlink(missing_ok=True)


def _download(source: Source, destination: Path) -> None:
    """Try each way that fits the file's name, then its upstream addresses; wrong bytes fail too."""
    failures: list[Exception] = []
    for way in _ways(source):
        try:
            way(source, destination)
            verify(destination, source)
            return
        except (LookupError, TheanoFastError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise
            failures.append(error)
    wrong = [error for error in failures if isinstance(error, HashMismatch)]
    if wrong and len(wrong) == len(failures):
        raise wrong[0]
    reasons = "\n  ".join(str(error).partition("\n  -> ")[0] for error in failures)
    raise SourceUnavailable(
        f"{source.file} cannot be downloaded:\n  {reasons}",
        "check the network and pip's and apt's configuration, name a mirror of Debian's in "
        f"{debian.MIRROR}, or put the files into a directory and pass --sources=DIR",
    )


def _ways(source: Source) -> list[Callable[[Source, Path], None]]:
    ways: list[Callable[[Source, Path], None]] = []
    if debian.FILE.fullmatch(source.file):
        ways.append(_from_debian)
    elif source.file.endswith((".whl", ".tar.gz", ".zip")):
        ways.append(_from_index)
    ways += [partial(_from_upstream, address) for address in source.upstream]
    return ways


def _from_debian(source: Source, destination: Path) -> None:
    debian.download(source.file, destination, paths.cache() / "apt")


def _from_index(source: Source, destination: Path) -> None:
    ask_pip("download", source.file, destination)


def ask_pip(*arguments: str | Path) -> str:
    """Run :mod:`builder.source.pypi`, and return the last line of what it printed.

    Raises:
        CommandFailed: it failed; the message is that line.
    """
    done = run(
        [sys.executable, "-m", "builder.source.pypi", *arguments], cwd=paths.ROOT, check=False
    )
    last = (done.output.strip().splitlines() or ["no output"])[-1]
    if done.status != 0:
        raise CommandFailed(f"pip: {last}")
    return last


def _from_upstream(address: str, _: Source, destination: Path) -> None:
    downloads.download(address, destination)
