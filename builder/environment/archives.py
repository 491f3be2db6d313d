"""An environment prepared for another place, and written as a tar archive."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Iterable, Sequence
from gzip import GzipFile
from pathlib import Path
from typing import IO

from builder.environment import envs
from builder.environment.envs import Lock
from builder.package.engine import SOURCE_DATE_EPOCH

# Licence texts, which a package has, but not what is installed from it.
LICENCES = Path("share", "licenses")


def install(lock: Lock, prefix: Path, final_prefix: Path, what: str) -> None:
    """Install a lock into ``prefix``, to be used at ``final_prefix``, with licences.

    Its records do not tell of this host.

    Args:
        what: what an error calls the environment.

    Raises:
        EnvironmentFailed: the installation failed.
    """
    envs.install(lock.files, prefix, what, final_prefix)
    for package in lock.packages:
        file = record(prefix, package.file.stem)
        found = json.loads(file.read_text(encoding="utf-8"))
        texts = Path(found["extracted_package_dir"], "info", "licenses")
        shutil.copytree(texts, prefix / LICENCES / package.name)
        # Where this host has its channel and its cache is no business of the environment's.
        found["url"] = f"file:///{package.path}"
        for key in ("extracted_package_dir", "package_tarball_full_path", "link"):
            found.pop(key, None)
        file.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def record(prefix: Path, package: str) -> Path:
    """Where an environment has the record of a package: its file's name, without the suffix."""
    return prefix / "conda-meta" / f"{package}.json"


def files(prefix: Path) -> list[Path]:
    """All files and links of an environment, sorted."""
    return sorted(file for file in prefix.rglob("*") if file.is_symlink() or not file.is_dir())


def write(
    stream: IO[bytes] | GzipFile,
    root: Path,
    files: Iterable[Path],
    top: Path,
    directories: Sequence[Path] = (),
) -> None:
    """Write files below ``root`` into a tar archive as files below ``top``, which is absolute.

    Owner, times and modes are the same whoever writes it; ``directories`` are absolute, empty
    and writable for all.
    """
    places = {top / file.relative_to(root): file for file in files}
    parents = {parent for place in (*places, *directories) for parent in place.parents}
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for place in sorted({*parents, *directories} - {Path("/")}):
            mode = 0o1777 if place in directories else 0o755
            tar.addfile(_member(place, tarfile.DIRTYPE, mode))
        for place, file in sorted(places.items()):
            if file.is_symlink():
                member = _member(place, tarfile.SYMTYPE, 0o777)
                member.linkname = str(file.readlink())
                tar.addfile(member)
            else:
                status = file.stat()
                member = _member(place, tarfile.REGTYPE, 0o755 if status.st_mode & 0o100 else 0o644)
                member.size = status.st_size
                with file.open("rb") as content:
                    tar.addfile(member, content)


def _member(place: Path, kind: bytes, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(str(place.relative_to("/")))
    member.type, member.mode, member.mtime = kind, mode, SOURCE_DATE_EPOCH
    return member
