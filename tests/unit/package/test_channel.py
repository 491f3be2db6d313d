"""Test that packages are added to a channel and replaced; the index is fake."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
import rattler.index  # noqa: F401 (a test needs it in sys.modules)

from builder.package import channel, solver
from builder.package.channel import Package


@pytest.fixture
def package(tmp_path: Path) -> Package:
    file = tmp_path / "cache" / "numpy-1.26.4-h0_0.conda"
    file.parent.mkdir()
    file.write_bytes(b"numpy")
    return Package(file, "linux-64", "ab" * 32, 5)


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch, package: Package) -> list[str]:
    """Replace the indexing of channels by py-rattler; return the indexed channels in order."""
    calls: list[str] = []

    def index(verb: str, channel: str) -> None:
        calls.append(channel)
        entries = {package.file.name: {"sha256": package.sha256}}
        for subdir, packages in (("linux-64", entries), ("noarch", {})):
            (Path(channel) / subdir / "repodata.json").write_text(
                json.dumps({"packages.conda": packages})
            )

    monkeypatch.setattr(solver, "call", index)
    return calls


def test_a_package_has_a_path_and_a_name(package: Package) -> None:
    assert package.path == "linux-64/numpy-1.26.4-h0_0.conda"
    assert package.name == "numpy"


def test_adding_a_package_again_does_nothing(
    tmp_path: Path, package: Package, indexed: list[str]
) -> None:
    for _ in range(2):
        channel.add_packages([package], tmp_path / "channel")
    assert (tmp_path / "channel" / package.path).read_bytes() == b"numpy"
    assert len(indexed) == 1


def test_new_bytes_replace_a_package_of_the_same_name(
    tmp_path: Path, package: Package, indexed: list[str]
) -> None:
    channel.add_packages([package], tmp_path / "channel")
    rebuilt = tmp_path / "rebuilt" / package.file.name
    rebuilt.parent.mkdir()
    rebuilt.write_bytes(b"numpy, rebuilt")
    channel.add_packages([Package(rebuilt, "linux-64", "cd" * 32, 14)], tmp_path / "channel")
    assert (tmp_path / "channel" / package.path).read_bytes() == b"numpy, rebuilt"
    assert package.file.read_bytes() == b"numpy"
    assert len(indexed) == 2


def test_linking_a_file_twice_leaves_no_temporary_file(tmp_path: Path, package: Package) -> None:
    for _ in range(2):
        channel.link_or_copy(package.file, tmp_path / package.file.name)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["cache", package.file.name]


def test_two_processes_can_add_the_same_package_at_the_same_time(
    tmp_path: Path, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / package.file.name
    link = os.link

    def link_in_two_processes(origin: Path, part: Path) -> None:
        link(origin, part)
        with monkeypatch.context() as patches:
            patches.setattr(channel.os, "link", link)
            patches.setattr(channel.os, "getpid", lambda: 0)
            channel.link_or_copy(package.file, target)

    monkeypatch.setattr(channel.os, "link", link_in_two_processes)
    channel.link_or_copy(package.file, target)
    assert target.read_bytes() == b"numpy"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["cache", target.name]


def test_an_empty_channel_has_an_index(tmp_path: Path, indexed: list[str]) -> None:
    channel.add_packages([], tmp_path / "channel")
    assert indexed == [str(tmp_path / "channel")]


def test_the_temporary_directory_of_the_index_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def index_fs(directory: Path, **_: object) -> None:
        (directory / ".tmp" / "half").mkdir(parents=True)
        (directory / "repodata.json").touch()

    # sys.modules has the package rattler.index. The attribute rattler.index is the module
    # rattler.index.index instead.
    monkeypatch.setattr(sys.modules["rattler.index"], "index_fs", index_fs)
    asyncio.run(solver._index(str(tmp_path)))
    assert [file.name for file in tmp_path.iterdir()] == ["repodata.json"]
