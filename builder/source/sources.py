"""Fetch source archives into the cache, and verify the SHA-256 that recipes pin."""

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

PARALLEL_DOWNLOADS = 4


def hash_file(file: Path) -> str:
    """Compute the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def verify_hash(file: Path, source: Source, origin: Path | None = None) -> None:
    """Compare a file with its pin.

    Args:
        file: the file.
        source: the source with the pinned SHA-256.
        origin: the path from which ``file`` was copied, for the error message.

    Raises:
        HashMismatch: the hashes differ; the message names the file and both hashes.
    """
    actual = hash_file(file)
    if actual != source.sha256:
        raise HashMismatch(
            f"{origin or source.file} ({file.stat().st_size} bytes) has the wrong SHA-256\n"
            f"  expected {source.sha256}\n  actual   {actual}",
            "the file is truncated, or another file has this name; the cache rejected the file."
            " Fetch it again; if it changed upstream on purpose, change the pin in its recipe",
        )


def fetch(
    sources: Iterable[Source], *, directory: Path | None = None, offline: bool = False
) -> list[Path]:
    """Put sources into the cache; link to them in ``build/sources``, which recipes read.

    Args:
        sources: the sources.
        directory: a directory with sources, which is searched before a download.
        offline: whether to raise an error instead of downloading a source.

    Returns:
        The paths of the sources in the cache, sorted by file name.

    Raises:
        SourceUnavailable: a file is not available from any origin.
        HashMismatch: a file does not have the pinned SHA-256.
        DiskFull: the file system of the cache is full.
    """
    ordered = sorted(set(sources), key=lambda source: source.file)
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        futures = [pool.submit(_fetch_source, source, directory, offline) for source in ordered]
    _raise_errors([error for future in futures if (error := future.exception())])
    files = [future.result() for future in futures]
    paths.SOURCES.mkdir(parents=True, exist_ok=True)
    for source, file in zip(ordered, files, strict=True):
        link = paths.SOURCES / source.file
        if not (link.is_symlink() and link.readlink() == file):
            link.unlink(missing_ok=True)
            link.symlink_to(file)
    return files


def _raise_errors(errors: Sequence[BaseException]) -> None:
    """Raise the first error that is not a SourceUnavailable.

    If all errors are SourceUnavailable, raise a SourceUnavailable with all messages.
    """
    unavailable = [error for error in errors if isinstance(error, SourceUnavailable)]
    others = [error for error in errors if error not in unavailable]
    if others or len(unavailable) == 1:
        raise next(iter(others or unavailable))
    if unavailable:
        messages = [_strip_hint(error) for error in unavailable]
        raise SourceUnavailable("\n".join(messages), unavailable[0].hint)


def _strip_hint(error: BaseException) -> str:
    """Return the message of an error without its hint."""
    return str(error).partition("\n  -> ")[0]


def cache_file(file: Path, name: str) -> Source:
    """Copy a user's file into the cache; return it as a source.

    Args:
        file: the user's file.
        name: the first part of the source's name. The first 16 digits of the SHA-256 follow.

    Raises:
        DiskFull: the file system of the cache is full.
    """
    digest = hash_file(file)
    source = Source(f"{name}-{digest[:16]}", digest)

    def write(part: Path) -> None:
        shutil.copyfile(file, part)
        verify_hash(part, source, file)

    if not (target := get_cached_path(source)).exists():
        _write_atomically(target, write)
    return source


def copy_to(directory: Path, files: Sequence[Path]) -> None:
    """Copy fetched sources into a directory, for a machine without a network."""
    directory.mkdir(parents=True, exist_ok=True)
    for file in files:
        _write_atomically(directory / file.name, partial(shutil.copyfile, file))


def get_cached_path(source: Source) -> Path:
    """Return the path of a source in the cache. A file at this path is complete and verified."""
    # The directory's name is a part of the SHA-256, so another pin gives another path.
    return paths.get_source_cache() / source.sha256[:16] / source.file


def _fetch_source(source: Source, directory: Path | None, offline: bool) -> Path:
    """Copy a source from ``directory`` into the cache; if it is not there, download it."""
    file = get_cached_path(source)
    if file.exists():
        return file
    local = directory / source.file if directory else None
    if local and not local.exists():
        local = None
    if local is None and offline:
        searched = f"{directory} or the cache" if directory else "the cache"
        raise SourceUnavailable(
            f"{source.file} is not in {searched}, and --offline forbids a download",
            "on a machine with a network: ./invoke fetch --stack=NAME --to=DIR; "
            "then pass that directory with --sources",
        )

    def write(part: Path) -> None:
        if local:
            shutil.copyfile(local, part)
            verify_hash(part, source, local)
        else:
            _download(source, part)

    _write_atomically(file, write)
    return file


def _write_atomically(file: Path, write: Callable[[Path], object]) -> None:
    """Write ``file`` atomically: call ``write`` on a temporary file, and rename this file.

    Raises:
        DiskFull: the file system is full.
    """
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
            raise DiskFull(f"no space left for {file}", "free some space and run again") from error
        raise
    finally:
        part.unlink(missing_ok=True)


def _download(source: Source, destination: Path) -> None:
    """Download a source from the first origin that has the pinned bytes.

    Raises:
        HashMismatch: all origins sent wrong bytes.
        SourceUnavailable: all origins failed; the message has each reason.
    """
    failures: list[Exception] = []
    for download in _list_downloads(source):
        try:
            download(source, destination)
            verify_hash(destination, source)
            return
        except (LookupError, TheanoFastError, OSError) as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise
            failures.append(error)
    mismatches = [error for error in failures if isinstance(error, HashMismatch)]
    if mismatches and len(mismatches) == len(failures):
        raise mismatches[0]
    reasons = "\n  ".join(map(_strip_hint, failures))
    raise SourceUnavailable(
        f"{source.file} cannot be downloaded:\n  {reasons}",
        "check the network and the configuration of pip and apt, name a Debian mirror in "
        f"{debian.MIRROR}, or put the files into a directory and pass --sources=DIR",
    )


def _list_downloads(source: Source) -> list[Callable[[Source, Path], None]]:
    """List the functions that can download a source, in the order in which they are tried.

    The file's name selects the first function: apt for Debian's files, pip for wheels and sdists.
    The upstream addresses in the recipe follow.
    """
    functions: list[Callable[[Source, Path], None]] = []
    if debian.FILE.fullmatch(source.file):
        functions.append(_download_from_debian)
    elif source.file.endswith((".whl", ".tar.gz", ".zip")):
        functions.append(_download_from_index)
    functions += [partial(_download_from_upstream, address) for address in source.upstream]
    return functions


def _download_from_debian(source: Source, destination: Path) -> None:
    debian.download(source.file, destination, paths.get_cache() / "apt")


def _download_from_index(source: Source, destination: Path) -> None:
    run_pip_helper("download", source.file, destination)


def _download_from_upstream(address: str, _: Source, destination: Path) -> None:
    downloads.download(address, destination)


def run_pip_helper(*arguments: str | Path) -> str:
    """Run :mod:`builder.source.pypi` as a program, and return the last line of its output.

    Raises:
        CommandFailed: the program failed; the message is the last line of its output.
    """
    finished = run(
        [sys.executable, "-m", "builder.source.pypi", *arguments], cwd=paths.ROOT, check=False
    )
    last_line = (finished.output.strip().splitlines() or ["no output"])[-1]
    if finished.status != 0:
        raise CommandFailed(f"pip: {last_line}")
    return last_line
