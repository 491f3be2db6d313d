"""Channels: directories of packages with an index."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from builder.package import canonical, solver

SUBDIRS = ("linux-64", "noarch")


@dataclass(frozen=True)
class Package:
    """A built package file."""

    file: Path
    subdir: str
    sha256: str
    size: int

    @property
    def path(self) -> str:
        """Its place in a channel."""
        return f"{self.subdir}/{self.file.name}"

    @property
    def name(self) -> str:
        """The package's name, without version and build string."""
        return canonical.name(self.file)


def place(packages: Iterable[Package], directory: Path) -> None:
    """Put packages into the channel at ``directory`` and index it, if that changes anything."""
    wanted = list(packages)
    indexed = _indexed(directory)
    if indexed is not None and all(
        indexed.get(package.path) == package.sha256 for package in wanted
    ):
        return
    for subdir in SUBDIRS:
        (directory / subdir).mkdir(parents=True, exist_ok=True)
    for package in wanted:
        link(package.file, directory / package.path)
    solver.call("index", channel=str(directory))


def link(origin: Path, target: Path) -> None:
    """Give a file a second name, or copy it where a hard link cannot reach; replaces ``target``."""
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        os.link(origin, part)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
            raise
        shutil.copyfile(origin, part)
    part.replace(target)
    # Two names of one file: the system has nothing to replace, and leaves both.
    part.unlink(missing_ok=True)


def _indexed(directory: Path) -> dict[str, str] | None:
    """The SHA-256 of each package in a channel's index, by its place; None without an index."""
    found: dict[str, str] | None = None
    for subdir in SUBDIRS:
        index = directory / subdir / "repodata.json"
        if index.exists():
            entries = json.loads(index.read_text(encoding="utf-8")).get("packages.conda", {})
            found = found or {}
            found.update({f"{subdir}/{file}": entry["sha256"] for file, entry in entries.items()})
    return found
