"""Check the symlinks in packages, and the files of the channel."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import zstandard
from commands import read_lock

from builder.package import solver


def list_members(package: Path) -> Iterator[tarfile.TarInfo]:
    """Yield the files that a package installs, as members of the tar archive in the package."""
    with zipfile.ZipFile(package) as archive:
        (name,) = (name for name in archive.namelist() if name.startswith("pkg-"))
        with archive.open(name) as compressed:
            stream = zstandard.ZstdDecompressor().stream_reader(compressed)
            with tarfile.open(fileobj=stream, mode="r|") as table:
                yield from table


def test_no_package_has_an_absolute_link(stack: str, channel: Path) -> None:
    """conda copies the target of an absolute symlink, and fails if the target is a directory."""
    links = {
        f"{file}: {member.name} -> {member.linkname}"
        for file in read_lock(stack)
        for package in channel.glob(f"*/{file}")
        for member in list_members(package)
        if member.issym() and member.linkname.startswith("/")
    }
    assert links == set()


def test_the_channel_has_nothing_but_packages_and_their_index(
    channel: Path, tmp_path: Path
) -> None:
    """The index of a new, empty channel also has only repodata.json files."""
    for subdir in ("linux-64", "noarch"):
        (tmp_path / subdir).mkdir()
    solver.call("index", channel=str(tmp_path))
    for folder in (channel, tmp_path):
        assert sorted(file.name for file in folder.iterdir()) == ["linux-64", "noarch"]
        index_files = {file.name for file in folder.glob("*/*") if file.suffix != ".conda"}
        assert index_files == {"repodata.json"}
