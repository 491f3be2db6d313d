"""Test the search for Debian's files: package lists, mirrors, addresses and suites."""

from __future__ import annotations

import lzma
import os
import shutil
from pathlib import Path

import pytest

from builder.common.processes import Finished
from builder.source import debian

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


def test_package_and_version_are_parsed_from_the_name_of_a_source_file() -> None:
    match = debian.FILE.fullmatch("zlib_1.2.13.dfsg.orig.tar.bz2")
    assert match
    assert (match["package"], match["version"]) == ("zlib", "1.2.13.dfsg")
    assert debian.FILE.fullmatch("openblas_0.3.29+ds.orig.tar.xz")
    assert not debian.FILE.fullmatch("numpy-1.26.4.tar.gz")
    match = debian.FILE.fullmatch("openssl_3.0.20-1~deb12u2.debian.tar.xz")
    assert match
    assert (match["package"], match["version"]) == ("openssl", "3.0.20-1~deb12u2")
    assert match["revision"]


def test_binary_packages_are_recognized_by_their_file_names() -> None:
    match = debian.FILE.fullmatch("python3-pygpu_0.7.6-13+b1_amd64.deb")
    assert match
    assert (match["package"], match["version"]) == ("python3-pygpu", "0.7.6-13+b1")
    assert match["binary"]
    source = debian.FILE.fullmatch("zlib_1.2.13.dfsg.orig.tar.bz2")
    assert source
    assert not source["binary"]


def test_the_pool_directory_is_in_the_stanza_of_the_file() -> None:
    assert debian.find_pool_directories(SHOWSRC, "zlib_1.3.orig.tar.bz2") == [
        "pool/updates/main/z/zlib"
    ]
    assert debian.find_pool_directories(SHOWSRC, "zlib_1.2.orig.tar.bz2") == []


SHOW = """Package: libgpuarray3
Version: 0.7.6-13+b1
Filename: pool/main/libg/libgpuarray/libgpuarray3_0.7.6-13+b1_amd64.deb

Package: libgpuarray3
Version: 0.7.6-14
Filename: pool/updates/main/libg/libgpuarray/libgpuarray3_0.7.6-14_amd64.deb
"""


def test_the_pool_directory_of_a_binary_package_is_in_its_stanza() -> None:
    file = "libgpuarray3_0.7.6-13+b1_amd64.deb"
    assert debian.find_pool_directories(SHOW, file) == ["pool/main/libg/libgpuarray"]
    assert debian.find_pool_directories(SHOW, "gpuarray3_0.7.6-14_amd64.deb") == []


TARGETS = """'http://mirror.example/debian/dists/bookworm/InRelease' bookworm_InRelease 0
'http://mirror.example/debian/dists/bookworm-updates/InRelease' updates_InRelease 0
'http://mirror.example/security/dists/bookworm-security/InRelease' security_InRelease 0
'http://elsewhere.example/dists/nodistro/InRelease' nodistro_InRelease 0
'http://flat.example/debian/./InRelease' flat_InRelease 0
'http://mirror.example/debian/dists/bookworm/main/binary-amd64/Packages.xz' Packages 0
"""
UBUNTU = "'http://mirror.example/ubuntu/dists/noble/InRelease' noble_InRelease 0 \n"


def test_sources_list_has_all_releases_on_the_hosts_debian_mirrors() -> None:
    entries = debian.format_sources_list(TARGETS)
    assert "http://mirror.example/debian trixie main" in entries
    assert "http://mirror.example/security trixie-security main" in entries
    assert "elsewhere" not in entries
    assert all(line.startswith("deb-src ") for line in entries.splitlines())
    binaries = debian.format_sources_list(TARGETS, "deb")
    assert "deb " in binaries
    assert "deb-src" not in binaries


def test_an_unchanged_sources_list_is_not_rewritten(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/apt-get")
    monkeypatch.setattr(debian, "_list_targets", lambda: TARGETS)
    options = debian._configure(tmp_path, "deb")
    assert "Dir::Cache::pkgcache=pkgcache.bin" in options
    os.utime(tmp_path / "sources.list", (0, 0))
    assert debian._configure(tmp_path, "deb") == options
    assert (tmp_path / "sources.list").stat().st_mtime == 0
    monkeypatch.setenv(debian.MIRROR, "http://named.example/debian")
    debian._configure(tmp_path, "deb")
    assert (tmp_path / "sources.list").stat().st_mtime > 0


def test_a_host_of_another_distribution_has_no_sources_list_entries() -> None:
    assert debian.format_sources_list(UBUNTU).strip() == ""


def test_the_mirror_in_the_environment_variable_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(debian.MIRROR, "http://named.example/debian/")
    entries = debian.format_sources_list(UBUNTU).splitlines()
    assert "deb-src [trusted=yes] http://named.example/debian bookworm main" in entries
    assert len(entries) == len(debian.RELEASES)


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("openblas_0.3.29+ds.orig.tar.xz", "o/openblas/openblas_0.3.29%2Bds.orig.tar.xz"),
        ("libffi_3.4.4.orig.tar.gz", "libf/libffi/libffi_3.4.4.orig.tar.gz"),
        ("xz_5-1~deb12u2.debian.tar.xz", "x/xz/xz_5-1~deb12u2.debian.tar.xz"),
    ],
)
def test_without_apt_the_address_of_a_source_is_computed_from_its_name(
    file: str, path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    addresses = []
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(debian.downloads, "download", lambda address, _: addresses.append(address))
    with pytest.raises(LookupError, match="no apt"):
        debian.download(file, tmp_path / "x", tmp_path)
    monkeypatch.setenv(debian.MIRROR, "http://named.example/debian")
    debian.download(file, tmp_path / "x", tmp_path)
    assert addresses == [f"http://named.example/debian/pool/main/{path}"]


def test_without_apt_a_binary_package_is_found_in_the_package_lists(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    addresses = []

    def download(address: str, destination: Path) -> None:
        addresses.append(address.removeprefix("http://named.example/debian/"))
        if address.endswith("/bullseye/main/binary-amd64/Packages.xz"):
            destination.write_bytes(
                lzma.compress(b"Package: g++\nFilename: pool/main/g/gcc/g++_10-1_amd64.deb\n\n")
            )
        else:
            destination.write_bytes(lzma.compress(b"\n"))

    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(debian.downloads, "download", download)
    monkeypatch.setenv(debian.MIRROR, "http://named.example/debian")
    debian.download("g++_10-1_amd64.deb", tmp_path / "x", tmp_path)
    assert addresses[-1] == "pool/main/g/gcc/g%2B%2B_10-1_amd64.deb"
    with pytest.raises(LookupError, match=r"lists no g\+\+_9-1_amd64\.deb"):
        debian.download("g++_9-1_amd64.deb", tmp_path / "x", tmp_path)
    # Each package list is downloaded once.
    assert len(addresses) == len(set(addresses)) == 1 + len(debian.RELEASES)


def test_a_base_image_uses_the_hosts_mirrors() -> None:
    assert debian.list_entries(TARGETS * 2, "bookworm") == [
        "deb http://mirror.example/debian bookworm main",
        "deb http://mirror.example/debian bookworm-updates main",
        "deb http://mirror.example/security bookworm-security main",
    ]
    assert debian.list_entries(TARGETS, "trixie") == []


MADISON = """
 zlib | 1:1.2.13.dfsg-1 | http://mirror.example/debian bookworm/main Sources
 zlib | 1:1.2.13.dfsg-1 | http://mirror.example/security bookworm-security/main Sources
 zlib |      1:1.3-1 | http://mirror.example/security trixie-security/main Sources
"""


def test_a_file_is_in_the_suites_that_have_its_version() -> None:
    assert debian.parse_suites(SHOWSRC, MADISON) == {
        "zlib_1.2.13.dfsg.orig.tar.bz2": {"bookworm", "bookworm-security"},
        "zlib_1.3.orig.tar.bz2": {"trixie-security"},
    }
    versions = "libgpuarray3 | 0.7.6-14 | http://mirror.example bookworm/main amd64 Packages\n"
    assert debian.parse_suites(SHOW, versions) == {
        "libgpuarray3_0.7.6-13+b1_amd64.deb": set(),
        "libgpuarray3_0.7.6-14_amd64.deb": {"bookworm"},
    }


def test_a_mirror_that_does_not_answer_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(argv: list[str], **_: object) -> Finished:
        if argv[-1] == "update":
            return Finished(100, "Err:1 mirror\nE: Failed to fetch InRelease\nE: Some failed")
        return Finished(0, TARGETS)

    monkeypatch.setattr(debian, "run", run)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/apt-get")
    with pytest.raises(LookupError, match=r"update: E: Failed to fetch InRelease$"):
        debian.list_suites(["zlib_1.3.orig.tar.bz2"], tmp_path)


# Versions in increasing order, as dpkg --compare-versions orders them.
ORDER = ("3.0-1~deb12u1", "3.0-1~deb12u2", "3.0-1~deb12u3", "3.0-1~deb12u10", "3.0-1")


@pytest.mark.parametrize(
    ("candidates", "later"),
    [
        (["ab_3.0-1~deb12u2.debian.tar.xz", "ab_3.0-1~deb12u1.debian.tar.xz"], None),
        (["ab_3.0-1~deb12u3.debian.tar.xz", "ab_3.0-1~deb12u10.debian.tar.xz"], "3.0-1~deb12u10"),
        (["ab_3.0-1.debian.tar.xz"], "3.0-1"),
        (["ab_3.0.1-1.debian.tar.xz", "bc_3.0-2.debian.tar.xz", "ab_3.0-2_amd64.deb"], None),
    ],
)
def test_a_later_fix_has_the_same_package_and_upstream_release(
    candidates: list[str], later: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(argv: list[str], **_: object) -> Finished:
        dpkg, option, left_version, relation, right_version = argv
        assert (dpkg, option, relation) == ("dpkg", "--compare-versions", "gt")
        return Finished(int(ORDER.index(left_version) <= ORDER.index(right_version)), "")

    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/dpkg")
    monkeypatch.setattr(debian, "run", run)
    assert debian.find_later_version("ab_3.0-1~deb12u2.debian.tar.xz", candidates) == later
    assert debian.find_later_version("ab_3.0.orig.tar.xz", candidates) is None


def test_without_dpkg_no_later_version_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert debian.find_later_version("ab_3.0-1.debian.tar.xz", ["ab_3.0-2.debian.tar.xz"]) is None
