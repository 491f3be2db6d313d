"""Test the contents of a bundle, and that unpacking it writes only below its directory."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from builder.common import paths
from builder.common.errors import CommandFailed, SourceUnavailable, UsageError
from builder.common.processes import Finished
from builder.package import bundles


def make_project(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a checkout of two files; replace git and pip, which downloads one wheel."""
    root.mkdir()
    (root / "tasks.py").write_text("tasks")
    (root / "invoke").write_text("door")
    (root / "invoke").chmod(0o700)

    def run(argv: list[Any], **_: object) -> Finished:
        if argv[0] == "git":
            return Finished(0, "invoke\ntasks.py\n")
        (Path(argv[argv.index("--dest") + 1]) / "invoke-3.0-py3-none-any.whl").write_text("wheel")
        return Finished(0, "")

    monkeypatch.setattr(paths, "ROOT", root)
    monkeypatch.setattr(bundles, "run", run)


def test_a_bundle_has_the_sources_the_checkout_and_the_builders_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(tmp_path / "checkout", monkeypatch)
    source = tmp_path / "zlib.tar.gz"
    source.write_text("zlib")
    bundles.write_bundle(tmp_path / "one.tar", [source])
    with tarfile.open(tmp_path / "one.tar") as tar:
        members = {item.name: (oct(item.mode), item.uname, item.mtime) for item in tar}
    time = bundles.SOURCE_DATE_EPOCH
    assert members == {
        "sources/zlib.tar.gz": ("0o644", "", time),
        "theano-fast/invoke": ("0o755", "", time),
        "theano-fast/tasks.py": ("0o644", "", time),
        "wheels/invoke-3.0-py3-none-any.whl": ("0o644", "", time),
    }
    with bundles.unpack_sources(tmp_path / "one.tar") as directory:
        assert {file.name: file.read_text() for file in directory.iterdir()} == {
            "zlib.tar.gz": "zlib"
        }


def test_an_incomplete_bundle_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_project(tmp_path / "checkout", monkeypatch)
    with pytest.raises(FileNotFoundError):
        bundles.write_bundle(tmp_path / "one.tar", [tmp_path / "none"])
    assert [file.name for file in tmp_path.iterdir() if "tar" in file.name] == []


def test_a_bundle_requires_a_git_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Finished:
        raise CommandFailed("not a git repository")

    monkeypatch.setattr(bundles, "run", refuse)
    with pytest.raises(UsageError, match="not a git repository"):
        bundles.write_bundle(tmp_path / "one.tar", [])


def test_unpacking_a_bundle_stays_in_its_directory(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "evil.tar", "w") as tar:
        member = tarfile.TarInfo("sources/../../evil")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"evil"))
    with bundles.unpack_sources(tmp_path / "evil.tar") as directory:
        assert [file.name for file in directory.iterdir()] == ["evil"]


def test_a_file_that_is_not_a_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_text("x")
    with (
        pytest.raises(SourceUnavailable, match="is not a bundle"),
        bundles.unpack_sources(tmp_path / "x.tar"),
    ):
        pass
