from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import SourceUnavailable
from builder.source import aocl, sources

# The first 20 bytes of a shared library (elf.h): the machine is the last two.
X86_64 = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00"
AARCH64 = X86_64[:18] + b"\xb7\x00"
I386 = b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x03\x00\x03\x00"


def archive(directory: Path, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    file = directory / "aocl-libm.tar"
    with tarfile.open(file, mode) as tar:
        for name, content in files.items():
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
def test_a_release_is_kept_as_a_source(tmp_path: Path, name: str, mode: str) -> None:
    file = archive(tmp_path, {"README": b"", name: X86_64}, mode)
    digest = aocl.keep(file)
    assert digest == sources.sha256(file)
    [kept] = sources.fetch([sources.Source(f"aocl-libm-{digest[:16]}", digest)], offline=True)
    assert kept.read_bytes() == file.read_bytes()
    assert aocl.keep(file) == digest


def test_a_link_to_the_library_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "linked.tar"
    with tarfile.open(file, "w") as tar:
        link = tarfile.TarInfo("lib/libalm.so")
        link.type, link.linkname = tarfile.SYMTYPE, "libalm.so.5"
        tar.addfile(link)
    with pytest.raises(SourceUnavailable, match="is truncated or no archive"):
        aocl.keep(file)
    with tarfile.open(file, "a") as tar:
        library = tarfile.TarInfo("lib/libalm.so.5")
        library.size = len(X86_64)
        tar.addfile(library, io.BytesIO(X86_64))
    assert aocl.keep(file)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"aocl-linux-gcc-5.0.0/aocl-libm.tar.gz": X86_64}, "neither libalm.so nor libamdlibm.so"),
        ({"lib/libalm.so": AARCH64}, "lib/libalm.so is no library for Linux on x86-64"),
        ({"lib/libalm.so": I386}, "no library for Linux on x86-64"),
        ({"lib/libamdlibm.so": b"MZ"}, "no library for Linux on x86-64"),
        ({"lib/libalm.so": X86_64, "lib32/libalm.so": I386}, "lib32/libalm.so is no library"),
    ],
)
def test_a_wrong_archive_is_named_and_not_kept(
    tmp_path: Path, files: dict[str, bytes], reason: str
) -> None:
    file = archive(tmp_path, files)
    with pytest.raises(SourceUnavailable, match=reason) as failure:
        aocl.keep(file)
    assert str(file) in str(failure.value)
    assert "aocl-libm-linux-*.tar.gz" in str(failure.value)
    assert not paths.source_cache().exists()


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2"])
@pytest.mark.parametrize("lost", [1, 4, 100, None])
def test_a_truncated_archive_is_refused(tmp_path: Path, mode: str, lost: int | None) -> None:
    files = {"lib/libalm.so": X86_64 + bytes(range(256)) * 400, "lib/libalm.a": b"!<arch>"}
    file = archive(tmp_path, files, mode)
    whole = file.read_bytes()
    file.write_bytes(whole[: -lost if lost else 0])
    with pytest.raises(SourceUnavailable, match="is truncated or no archive"):
        aocl.keep(file)


def test_another_file_is_no_archive(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text("<html>Accept the licence</html>")
    with pytest.raises(SourceUnavailable, match="download it again"):
        aocl.keep(file)
