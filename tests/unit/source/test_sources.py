"""Test the verification of sources, the order of their origins, and errors."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import HashMismatch, SourceUnavailable
from builder.source import sources
from builder.stack.recipes import Source

CONTENT = b"a source archive"
GOOD = Source("xyz_1.0.orig.tar.gz", hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture
def sources_directory(tmp_path: Path) -> Path:
    """Return a directory for ``--sources`` that contains the file of GOOD."""
    directory = tmp_path / "sources"
    directory.mkdir()
    (directory / GOOD.file).write_bytes(CONTENT)
    return directory


def list_files(directory: Path) -> list[Path]:
    return [file for file in directory.rglob("*") if file.is_file()]


def test_a_file_of_the_sources_directory_is_cached_and_linked(sources_directory: Path) -> None:
    [file] = sources.fetch([GOOD], directory=sources_directory, offline=True)
    assert file.read_bytes() == CONTENT
    assert (paths.SOURCES / GOOD.file).resolve() == file
    (sources_directory / GOOD.file).unlink()
    assert sources.fetch([GOOD], offline=True) == [file]


def test_a_file_of_the_user_is_cached_under_its_hash(tmp_path: Path) -> None:
    (tmp_path / "release-5.0.tar.gz").write_bytes(CONTENT)
    source = sources.cache_file(tmp_path / "release-5.0.tar.gz", "release")
    assert source == Source(f"release-{GOOD.sha256[:16]}", GOOD.sha256)
    [file] = sources.fetch([source], offline=True)
    assert file.read_bytes() == CONTENT


def test_a_file_with_a_wrong_hash_is_named_and_not_cached(sources_directory: Path) -> None:
    (sources_directory / GOOD.file).write_bytes(CONTENT[:-1])
    with pytest.raises(HashMismatch) as failure:
        sources.fetch([GOOD], directory=sources_directory)
    message = str(failure.value)
    assert str(sources_directory / GOOD.file) in message
    assert GOOD.sha256 in message
    assert hashlib.sha256(CONTENT[:-1]).hexdigest() in message
    assert list_files(paths.get_cache()) == []


def test_offline_downloads_nothing_and_gives_a_hint(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match=r"(?s)xyz_1\.0.*--offline.*invoke fetch"):
        sources.fetch([GOOD], offline=True)


def test_each_failed_origin_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_without_mirror(*_: object) -> None:
        raise LookupError("no mirror has it")

    def fail_without_network(*_: object) -> None:
        raise OSError("network is unreachable")

    monkeypatch.setattr(sources.debian, "download", fail_without_mirror)
    monkeypatch.setattr(sources.downloads, "download", fail_without_network)
    source = Source(GOOD.file, GOOD.sha256, ("https://upstream.example/xyz-1.0.tar.gz",))
    with pytest.raises(SourceUnavailable) as failure:
        sources.fetch([source])
    message = str(failure.value)
    assert "no mirror has it" in message
    assert "network is unreachable" in message
    assert "--sources" in message
    assert list_files(paths.get_cache()) == []


def test_one_error_names_all_unavailable_files() -> None:
    others = [Source(f"{name}.zip", GOOD.sha256) for name in ("one", "two")]
    with pytest.raises(SourceUnavailable) as failure:
        sources.fetch([GOOD, *others], offline=True)
    message = str(failure.value)
    assert all(source.file in message for source in (GOOD, *others))
    assert message.count("->") == 1


def test_after_a_wrong_hash_the_next_origin_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def download_wrong_bytes(file: str, destination: Path, state: Path) -> None:
        destination.write_bytes(b"<html>not found</html>")

    def download_content(address: str, destination: Path) -> None:
        destination.write_bytes(CONTENT)

    monkeypatch.setattr(sources.debian, "download", download_wrong_bytes)
    monkeypatch.setattr(sources.downloads, "download", download_content)
    [file] = sources.fetch([Source(GOOD.file, GOOD.sha256, ("https://upstream.example/x",))])
    assert file.read_bytes() == CONTENT


def test_a_truncated_download_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def download_part(file: str, destination: Path, state: Path) -> None:
        destination.write_bytes(CONTENT[:5])

    monkeypatch.setattr(sources.debian, "download", download_part)
    with pytest.raises(HashMismatch):
        sources.fetch([GOOD])
    assert list_files(paths.get_cache()) == []


def test_fetched_files_are_copied(sources_directory: Path, tmp_path: Path) -> None:
    files = sources.fetch([GOOD], directory=sources_directory)
    sources.copy_to(tmp_path / "out", files)
    assert [file.name for file in (tmp_path / "out").iterdir()] == [GOOD.file]
