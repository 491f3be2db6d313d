"""Test the checks of AMD's release archives; the archives are fake."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from elf_file import RWE, make_library

from builder.common import paths
from builder.common.errors import SourceUnavailable
from builder.source import aocl, sources

X86_64 = make_library()
AARCH64 = X86_64[:18] + b"\xb7\x00" + X86_64[20:]
I386 = b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x03\x00\x03\x00"


def write_archive(directory: Path, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    """Write an archive of AMD's library: a licence and ``files``."""
    file = directory / "aocl-libm.tar"
    with tarfile.open(file, mode) as tar:
        for name, content in {"LICENSE": b"What AMD allows", **files}.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("amd-libm/lib/libalm.so", "w:gz"),
        ("aocl-linux-gcc-5.0.0/lib/libalm.so", "w:xz"),
        ("lib/dynamic/libamdlibm.so", "w"),
    ],
)
def test_a_release_is_cached_as_a_source(tmp_path: Path, name: str, mode: str) -> None:
    file = write_archive(tmp_path, {"README": b"", name: X86_64}, mode)
    digest = aocl.cache_archive(file)
    assert digest == sources.hash_file(file)
    [cached] = sources.fetch([sources.Source(f"aocl-libm-{digest[:16]}", digest)], offline=True)
    assert cached.read_bytes() == file.read_bytes()
    assert aocl.cache_archive(file) == digest


def test_a_symlink_to_the_library_is_followed(tmp_path: Path) -> None:
    file = write_archive(tmp_path, {}, "w")
    with tarfile.open(file, "a") as tar:
        link = tarfile.TarInfo("lib/libalm.so")
        link.type, link.linkname = tarfile.SYMTYPE, "libalm.so.5"
        tar.addfile(link)
    with pytest.raises(SourceUnavailable, match="is truncated"):
        aocl.cache_archive(file)
    with tarfile.open(file, "a") as tar:
        target = tarfile.TarInfo("lib/libalm.so.5")
        target.size = len(X86_64)
        tar.addfile(target, io.BytesIO(X86_64))
    assert aocl.cache_archive(file)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"lib/libm.so": X86_64}, "neither libalm.so nor libamdlibm.so"),
        ({"lib/libalm.so": AARCH64}, "lib/libalm.so: it is not a library or program"),
        ({"lib/libalm.so": I386}, "not a library or program for Linux"),
        ({"lib/libamdlibm.so": b"MZ"}, "not a library or program for Linux"),
        (
            {"lib/libalm.so": X86_64, "lib32/libalm.so": I386},
            "lib32/libalm.so: it is not",
        ),
        ({"lib/libalm.so": X86_64[:-1]}, "lib/libalm.so: it is truncated"),
    ],
)
def test_an_archive_without_a_whole_x86_64_library_is_named_and_not_cached(
    tmp_path: Path, files: dict[str, bytes], reason: str
) -> None:
    file = write_archive(tmp_path, files)
    with pytest.raises(SourceUnavailable, match=reason) as failure:
        aocl.cache_archive(file)
    assert str(file) in str(failure.value)
    assert "aocl-libm-linux-*.tar.gz" in str(failure.value)
    assert not paths.get_source_cache().exists()


def test_the_hint_for_the_archive_of_all_aocl_libraries_names_the_inner_archive(
    tmp_path: Path,
) -> None:
    file = write_archive(tmp_path, {"aocl-linux-gcc-5.1.0/aocl-libm-linux-gcc-5.1.0.tar.gz": b""})
    with pytest.raises(SourceUnavailable, match="has neither") as failure:
        aocl.cache_archive(file)
    assert "unpack it, and pass the aocl-libm-linux-gcc-5.1.0.tar.gz" in str(failure.value)


def test_a_release_without_a_licence_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bare.tar"
    for header, reason in (("amdlibm.h", ""), ("amdlibm_vec.h", "contains no AMD licence")):
        with tarfile.open(file, "w") as tar:
            for name in (header, "lib/libalm.so"):
                member = tarfile.TarInfo(name)
                member.size = len(X86_64)
                tar.addfile(member, io.BytesIO(X86_64))
        if reason:
            with pytest.raises(SourceUnavailable, match=reason):
                aocl.cache_archive(file)
        else:
            aocl.cache_archive(file)


@pytest.mark.parametrize("version", [(2, 36), (2, 40), (0,)])
def test_an_executable_stack_gives_a_warning_if_glibc_allows_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    version: tuple[int, ...],
) -> None:
    monkeypatch.setattr(aocl, "detect_glibc", lambda: version)
    aocl.cache_archive(write_archive(tmp_path, {"lib/libalm.so": X86_64}))
    unwarned = capsys.readouterr().out.splitlines()
    assert len(unwarned) == 1
    aocl.cache_archive(write_archive(tmp_path, {"lib/libalm.so": make_library(stack=RWE)}))
    warned = capsys.readouterr().out.splitlines()
    assert warned[0] == unwarned[0]
    assert "lib/libalm.so needs an executable stack" in warned[1]


@pytest.mark.parametrize("version", [(2, 41), (2, 42), (3, 0)])
def test_an_executable_stack_is_refused_if_glibc_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...]
) -> None:
    monkeypatch.setattr(aocl, "detect_glibc", lambda: version)
    assert aocl.cache_archive(write_archive(tmp_path, {"lib/libalm.so": X86_64}))
    file = write_archive(tmp_path, {"lib/libalm.so": make_library(stack=RWE)})
    with pytest.raises(SourceUnavailable, match="needs an executable stack") as failure:
        aocl.cache_archive(file)
    assert len(str(failure.value).splitlines()) == 2


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2"])
@pytest.mark.parametrize("lost_bytes", [1, 4, 100, None])
def test_a_truncated_archive_is_refused(tmp_path: Path, mode: str, lost_bytes: int | None) -> None:
    files = {"lib/libalm.so": X86_64 + bytes(range(256)) * 400, "lib/libalm.a": b"!<arch>"}
    file = write_archive(tmp_path, files, mode)
    content = file.read_bytes()
    file.write_bytes(content[: -lost_bytes if lost_bytes else 0])
    with pytest.raises(SourceUnavailable, match=r"is (truncated|empty)") as failure:
        aocl.cache_archive(file)
    assert len(str(failure.value).splitlines()) == 2


@pytest.mark.parametrize("content", [b"<html>Accept the licence</html>", bytes(range(256)) * 9])
def test_a_file_that_is_not_an_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(content)
    with pytest.raises(SourceUnavailable, match="is not a tar archive") as failure:
        aocl.cache_archive(file)
    assert "download it again" in str(failure.value)
    assert len(str(failure.value).splitlines()) == 2


def test_a_zip_archive_has_its_own_message(tmp_path: Path) -> None:
    file = tmp_path / "aocl.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("lib/libalm.so", X86_64)
    with pytest.raises(SourceUnavailable, match="is a zip archive") as failure:
        aocl.cache_archive(file)
    assert len(str(failure.value).splitlines()) == 2
