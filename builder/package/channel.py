"""Add packages to channels: directories of packages with an index."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from builder.common.files import name_partial_file
from builder.package import canonical, solver

SUBDIRS = ("linux-64", "noarch")


@dataclass(frozen=True)
class Package:
    """A built package: its file, subdirectory in a channel, SHA-256, and size in bytes."""

    file: Path
    subdir: str
    sha256: str
    size: int

    @property
    def path(self) -> str:
        """The package's path in a channel."""
        return f"{self.subdir}/{self.file.name}"

    @property
    def name(self) -> str:
        """The package's name, without version and build string."""
        return canonical.package_name(self.file)


def add_packages(packages: Iterable[Package], directory: Path) -> None:
    """Add packages to the channel at ``directory`` and index it.

    Do nothing if the index has all packages with the same SHA-256.
    """
    packages = list(packages)
    indexed = _read_index(directory)
    if indexed is not None and all(
        indexed.get(package.path) == package.sha256 for package in packages
    ):
        return
    for subdir in SUBDIRS:
        (directory / subdir).mkdir(parents=True, exist_ok=True)
    for package in packages:
        link_or_copy(package.file, directory / package.path)
    solver.call("index", channel=str(directory))


def link_or_copy(origin: Path, target: Path) -> None:
    """Replace ``target`` by a hard link to ``origin``, or by a copy if a link is not possible."""
    part = name_partial_file(target)
    part.unlink(missing_ok=True)
    try:
        os.link(origin, part)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
            raise
        shutil.copyfile(origin, part)
    part.replace(target)
    # If both names are links to one file already, rename(2) does nothing and ``part`` still exists.
    part.unlink(missing_ok=True)


def _read_index(directory: Path) -> dict[str, str] | None:
    """Read the SHA-256 of each package in a channel's index, by the package's path in the channel.

    Return None if the channel has no index.
    """
    indexes = [(subdir, directory / subdir / "repodata.json") for subdir in SUBDIRS]
    indexes = [(subdir, index) for subdir, index in indexes if index.exists()]
    if not indexes:
        return None
    return {
        f"{subdir}/{file}": entry["sha256"]
        for subdir, index in indexes
        for file, entry in json.loads(index.read_text("utf-8")).get("packages.conda", {}).items()
    }
