"""Install an environment for use at another prefix, and write it as a tar archive."""

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

# The directory for licence texts. Packages contain them, but conda does not install them.
LICENCES = Path("share", "licenses")


def install_relocated(lock: Lock, prefix: Path, final_prefix: Path, description: str) -> None:
    """Install the packages of a lock file into ``prefix``, for use at ``final_prefix``.

    Also install their licence texts. The records in ``conda-meta`` contain no path of this host.

    Args:
        description: the name of the environment in error messages.

    Raises:
        EnvironmentFailed: the installation failed.
    """
    envs.install_packages(lock.files, prefix, description, final_prefix)
    for package in lock.packages:
        file = get_record_path(prefix, package.file.stem)
        metadata = json.loads(file.read_text(encoding="utf-8"))
        texts = Path(metadata["extracted_package_dir"], "info", "licenses")
        shutil.copytree(texts, prefix / LICENCES / package.name)
        # Remove the paths of this host's channel and cache.
        metadata["url"] = f"file:///{package.path}"
        for key in ("extracted_package_dir", "package_tarball_full_path", "link"):
            metadata.pop(key, None)
        file.write_text(json.dumps(metadata, indent=2) + "\n", encoding="utf-8")


def get_record_path(prefix: Path, package: str) -> Path:
    """Return the path of a package's record in ``conda-meta``.

    Args:
        package: the name of the package's file without suffix: ``zlib-1.2.13-h0_0``.
    """
    return prefix / "conda-meta" / f"{package}.json"


def list_files(prefix: Path) -> list[Path]:
    """List all files and symlinks of an environment, sorted by path."""
    return sorted(file for file in prefix.rglob("*") if file.is_symlink() or not file.is_dir())


def write_tar(
    stream: IO[bytes] | GzipFile,
    root: Path,
    files: Iterable[Path],
    top: Path,
    directories: Sequence[Path] = (),
) -> None:
    """Write files below ``root`` into a tar archive.

    Owners, times and modes do not depend on the user or the host.

    Args:
        top: the absolute path that replaces ``root`` in the archive.
        directories: absolute paths of empty directories to add, writable by all users.
    """
    members = {top / file.relative_to(root): file for file in files}
    parents = {parent for path in (*members, *directories) for parent in path.parents}
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted({*parents, *directories} - {Path("/")}):
            mode = 0o1777 if path in directories else 0o755
            tar.addfile(_make_member(path, tarfile.DIRTYPE, mode))
        for path, file in sorted(members.items()):
            if file.is_symlink():
                member = _make_member(path, tarfile.SYMTYPE, 0o777)
                member.linkname = str(file.readlink())
                tar.addfile(member)
            else:
                status = file.stat()
                member = _make_member(
                    path, tarfile.REGTYPE, 0o755 if status.st_mode & 0o100 else 0o644
                )
                member.size = status.st_size
                with file.open("rb") as content:
                    tar.addfile(member, content)


def _make_member(path: Path, kind: bytes, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(str(path.relative_to("/")))
    member.type, member.mode, member.mtime = kind, mode, SOURCE_DATE_EPOCH
    return member
