"""One archive with all that a build takes: sources, this repository and the builder's tools."""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from builder.common import paths
from builder.common.errors import CommandFailed, SourceUnavailable, UsageError
from builder.common.processes import run
from builder.package.engine import SOURCE_DATE_EPOCH

# The archive's directories; `invoke` reads WHEELS too.
REPOSITORY, SOURCES, WHEELS = "theano-fast", "sources", "wheels"


def write(file: Path, sources: Iterable[Path]) -> None:
    """Write a bundle of ``sources``, the files that git tracks here, and requirements.txt's wheels.

    The same checkout gives the same bytes. The wheels are for Pythons of this one's minor version.

    Raises:
        UsageError: this directory is not a git checkout.
        CommandFailed: pip cannot provide the wheels.
    """
    members = {f"{SOURCES}/{source.name}": source for source in sources}
    members |= {f"{REPOSITORY}/{name}": paths.ROOT / name for name in _tracked()}
    part = file.with_name(f".{file.name}.part")
    with tempfile.TemporaryDirectory() as wheels:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        run([*pip, "--only-binary=:all:", "--dest", wheels, "-r", paths.REQUIREMENTS])
        members |= {f"{WHEELS}/{wheel.name}": wheel for wheel in Path(wheels).iterdir()}
        try:
            with tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as tar:
                for name, member in sorted(members.items()):
                    tar.add(member, name, filter=anonymous)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)


def _tracked() -> list[str]:
    try:
        return run(["git", "-C", paths.ROOT, "ls-files"]).output.splitlines()
    except CommandFailed as error:
        raise UsageError(
            f"git does not list this project's files: {error}",
            "make the bundle in a git checkout",
        ) from error


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A member of a tar archive without owner and time, and with the plainest mode."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = SOURCE_DATE_EPOCH
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member


@contextmanager
def unpacked(file: Path) -> Iterator[Path]:
    """A directory with a bundle's sources, while the block runs.

    Raises:
        SourceUnavailable: the file is no bundle.
    """
    paths.cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=paths.cache()) as directory:
        try:
            with tarfile.open(file) as tar:
                for member in tar:
                    content = tar.extractfile(member)
                    if content and member.name.startswith(f"{SOURCES}/"):
                        with (Path(directory) / Path(member.name).name).open("wb") as target:
                            shutil.copyfileobj(content, target)
        except tarfile.TarError as error:
            raise SourceUnavailable(
                f"{file} is not a bundle: {error}", "make one: ./invoke fetch --bundle=FILE"
            ) from error
        yield Path(directory)
