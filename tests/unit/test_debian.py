from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from builder import debian
from builder.run import Finished

SHOWSRC = """Package: zlib
Version: 1:1.2.13.dfsg-1
Directory: pool/main/z/zlib
Checksums-Sha256:
 aaaa 2399 zlib_1.2.13.dfsg-1.dsc
 {digest} 1239825 zlib_1.2.13.dfsg.orig.tar.bz2

Package: zlib
Version: 1:1.3-1
Directory: pool/updates/main/z/zlib
Checksums-Sha256:
 {digest} 1239826 zlib_1.3.orig.tar.bz2
""".format(digest="0" * 64)


def test_file_names_tell_the_source_package() -> None:
    match = debian.FILE.fullmatch("zlib_1.2.13.dfsg.orig.tar.bz2")
    assert match
    assert (match["package"], match["version"]) == ("zlib", "1.2.13.dfsg")
    assert debian.FILE.fullmatch("openblas_0.3.29+ds.orig.tar.xz")
    assert not debian.FILE.fullmatch("numpy-1.26.4.tar.gz")


def test_a_binary_package_is_one_and_a_source_is_none() -> None:
    match = debian.FILE.fullmatch("python3-pygpu_0.7.6-13+b1_amd64.deb")
    assert match
    assert (match["package"], match["version"]) == ("python3-pygpu", "0.7.6-13+b1")
    assert match["binary"]
    source = debian.FILE.fullmatch("zlib_1.2.13.dfsg.orig.tar.bz2")
    assert source
    assert not source["binary"]


def test_the_pool_directory_is_the_one_that_lists_the_file() -> None:
    assert debian.directories(SHOWSRC, "zlib_1.3.orig.tar.bz2") == ["pool/updates/main/z/zlib"]
    assert debian.directories(SHOWSRC, "zlib_1.2.orig.tar.bz2") == []


SHOW = """Package: libgpuarray3
Version: 0.7.6-13+b1
Filename: pool/main/libg/libgpuarray/libgpuarray3_0.7.6-13+b1_amd64.deb

Package: libgpuarray3
Version: 0.7.6-14
Filename: pool/updates/main/libg/libgpuarray/libgpuarray3_0.7.6-14_amd64.deb
"""


def test_the_pool_directory_of_a_binary_package_is_in_its_stanza() -> None:
    file = "libgpuarray3_0.7.6-13+b1_amd64.deb"
    assert debian.directories(SHOW, file) == ["pool/main/libg/libgpuarray"]
    assert debian.directories(SHOW, "gpuarray3_0.7.6-14_amd64.deb") == []


TARGETS = """http://mirror.example/debian/ bookworm
http://mirror.example/debian/ bookworm-updates
http://mirror.example/security/ bookworm-security
http://elsewhere.example/ nodistro
"""


def test_source_entries_cover_the_releases_on_the_hosts_own_mirrors() -> None:
    entries = debian.sources_list(TARGETS)
    assert "http://mirror.example/debian/ trixie main" in entries
    assert "http://mirror.example/security/ trixie-security main" in entries
    assert "elsewhere" not in entries
    assert all(line.startswith("deb-src ") for line in entries.splitlines())
    binaries = debian.sources_list(TARGETS, "deb")
    assert "deb " in binaries
    assert "deb-src" not in binaries


def test_a_host_of_another_distribution_has_no_entries() -> None:
    assert debian.sources_list("http://mirror.example/ubuntu/ noble\n").strip() == ""


def test_a_base_comes_from_the_hosts_mirrors_of_its_release() -> None:
    assert debian.package_list(TARGETS * 2, "bookworm") == [
        "deb http://mirror.example/debian/ bookworm main",
        "deb http://mirror.example/debian/ bookworm-updates main",
        "deb http://mirror.example/security/ bookworm-security main",
    ]
    assert debian.package_list(TARGETS, "trixie") == []


def test_what_the_mirrors_list_is_read_from_each_stanza() -> None:
    both = {"zlib_1.2.13.dfsg.orig.tar.bz2", "zlib_1.3.orig.tar.bz2"}
    assert debian.names(SHOWSRC) == both
    assert debian.names(SHOW) == {
        "libgpuarray3_0.7.6-13+b1_amd64.deb",
        "libgpuarray3_0.7.6-14_amd64.deb",
    }


def test_a_mirror_that_does_not_answer_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(argv: list[str], **_: object) -> Finished:
        if argv[-1] == "update":
            return Finished(100, "Err:1 mirror\nE: Failed to fetch InRelease\nE: Some failed")
        return Finished(0, TARGETS)

    monkeypatch.setattr(debian, "run", run)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/apt-get")
    with pytest.raises(LookupError, match=r"update: E: Failed to fetch InRelease$"):
        debian.listed(["zlib_1.3.orig.tar.bz2"], tmp_path)
