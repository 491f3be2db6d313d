from __future__ import annotations

import pytest
from elf_file import RWE, library

from builder.common import elf
from builder.package import binaries

FLOOR = (2, 28)
NEW = {"libc.so.6": {"GLIBC_2.34": ["dlopen", "dlsym", "dlclose", "dlerror"]}}


def complaints(image: bytes, file: str = "lib/x.so", *libraries: str) -> list[str]:
    return list(binaries.complaints({file: elf.demands(image)}, FLOOR, libraries))


def test_a_newer_glibc_is_refused() -> None:
    assert complaints(library(versions=NEW)) == [
        "lib/x.so needs GLIBC_2.34 (dlopen, dlsym, dlclose, ...), the floor is 2.28"
    ]
    assert complaints(library(versions={"libc.so.6": {"GLIBC_2.28": ["fcntl64"]}})) == []
    # Compared as numbers, and only for glibc.
    assert complaints(library(versions={"libc.so.6": {"GLIBC_2.4": ["__stack_chk_fail"]}})) == []
    assert complaints(library(versions={"libstdc++.so.6": {"GLIBCXX_3.4.30": ["_Z"]}})) == []
    assert complaints(library(versions=NEW, weak=["GLIBC_2.34"])) == []


@pytest.mark.parametrize("version", ["GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR"])
def test_a_version_without_a_number_is_above_every_floor(version: str) -> None:
    [complaint] = complaints(library(versions={"libc.so.6": {version: []}}))
    assert complaint.startswith(f"lib/x.so needs {version} ")


def test_a_library_that_is_nowhere_is_refused() -> None:
    image = library(needed=["libz.so.1", "libc.so.6", "libmvec.so.1"])
    assert complaints(image) == ["lib/x.so needs libz.so.1, which no dependency has"]
    assert complaints(image, "lib/x.so", "libz.so.1") == []


@pytest.mark.parametrize(
    ("file", "path", "inside"),
    [
        ("lib/x.so", "$ORIGIN", True),
        ("lib/x.so", "$ORIGIN/", True),
        ("lib/x.so", "${ORIGIN}/../lib", True),
        ("lib/python3.11/lib-dynload/x.so", "$ORIGIN/../..", True),
        ("bin/x", "$ORIGIN/../lib", True),
        ("lib/x.so", "$ORIGIN/../../lib", False),
        ("x.so", "$ORIGIN/..", False),
        ("lib/x.so", "$ORIGIN//..", True),
        ("lib/x.so", "$ORIGIN//../..", False),
        ("lib/x.so", "/usr/lib", False),
        ("lib/x.so", "lib", False),
        # An empty entry means the working directory.
        ("lib/x.so", "", False),
    ],
)
def test_a_search_path_stays_below_the_prefix(file: str, path: str, inside: bool) -> None:
    result = complaints(library(search=(elf.DT_RUNPATH, f"$ORIGIN:{path}")), file)
    assert result == (
        [] if inside else [f"{file} looks for libraries in {path!r}, which is not below the prefix"]
    )


def test_what_is_unsafe_or_for_few_processors_is_refused() -> None:
    assert complaints(library(stack=RWE)) == ["lib/x.so demands an executable stack"]
    assert complaints(library(entries=[(elf.DT_TEXTREL, 0)])) == ["lib/x.so has text relocations"]
    assert complaints(library(levels=7)) == ["lib/x.so needs a processor of x86-64-v3"]
    assert complaints(library(levels=1)) == []


def test_the_newest_glibc_that_is_asked_for() -> None:
    old = {"libc.so.6": {"GLIBC_2.3.4": ["a"], "GLIBC_2.14": ["memcpy"], "GLIBC_2.4": ["b"]}}
    demands = {"lib/y.so": elf.demands(library(versions=old))}
    assert binaries.highest(demands) == ((2, 14), "GLIBC_2.14", "lib/y.so", ("memcpy",))
    assert binaries.requirement(demands) == ["__glibc >=2.14,<3.0.a0"]
    demands["lib/x.so"] = elf.demands(library(versions=NEW))
    assert binaries.requirement(demands) == ["__glibc >=2.34,<3.0.a0"]
    assert binaries.requirement({"lib/z.so": elf.demands(library())}) == []
