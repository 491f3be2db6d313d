"""Write and read bundles: archives with the sources, this repository and the builder's tools."""

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

# The directories of a bundle. The script `invoke` unpacks WHEELS, so it has this name too.
REPOSITORY, SOURCES, WHEELS = "theano-fast", "sources", "wheels"


def write_bundle(file: Path, sources: Iterable[Path]) -> None:
    """Write a bundle of ``sources``, the files that git tracks, and the wheels of requirements.txt.

    The same checkout gives the same bytes. The wheels are for the minor version of the Python that
    runs this function.

    Raises:
        UsageError: this directory is not a git checkout.
        CommandFailed: pip cannot provide the wheels.
    """
    members = {f"{SOURCES}/{source.name}": source for source in sources}
    members |= {f"{REPOSITORY}/{name}": paths.ROOT / name for name in _list_tracked_files()}
    part = file.with_name(f".{file.name}.part")
    with tempfile.TemporaryDirectory() as wheels:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        run([*pip, "--only-binary=:all:", "--dest", wheels, "-r", paths.REQUIREMENTS])
        members |= {f"{WHEELS}/{wheel.name}": wheel for wheel in Path(wheels).iterdir()}
        try:
            with tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as tar:
                for name, member in sorted(members.items()):
                    tar.add(member, name, filter=normalize_member)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)


def _list_tracked_files() -> list[str]:
    try:
        return run(["git", "-C", paths.ROOT, "ls-files"]).output.splitlines()
    except CommandFailed as error:
        raise UsageError(
            f"git cannot list this project's files: {error}",
            "make the bundle in a git checkout",
        ) from error


def normalize_member(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove owner and time of a member of a tar archive, and set its mode to 0755 or 0644."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = SOURCE_DATE_EPOCH
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    return member


@contextmanager
def unpack_sources(file: Path) -> Iterator[Path]:
    """Unpack a bundle's sources as a context; yield their temporary directory.

    Raises:
        SourceUnavailable: the file is not a bundle.
    """
    paths.get_cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=paths.get_cache()) as directory:
        try:
            with tarfile.open(file) as tar:
                for member in tar:
                    content = tar.extractfile(member)
                    if content and member.name.startswith(f"{SOURCES}/"):
                        with (Path(directory) / Path(member.name).name).open("wb") as target:
                            shutil.copyfileobj(content, target)
        except tarfile.TarError as error:
            raise SourceUnavailable(
                f"{file} is not a bundle: {error}", "make a bundle: ./invoke fetch --bundle=FILE"
            ) from error
        yield Path(directory)
