from __future__ import annotations

import pytest
from elf_file import RW, RWE, library

from builder.common import elf


@pytest.mark.parametrize(
    ("image", "stack", "relocations"),
    [
        (library(), False, False),
        (library(stack=RWE), True, False),
        # Like the output of an assembler without a note.
        (library(stack=None), True, False),
        (library(entries=[(22, 0)]), False, True),
        (library(entries=[(30, 4)]), False, True),
        (library(entries=[(30, 8)], needed=["t" * 22]), False, False),
        (library(stack=RWE, entries=[(30, 12)]), True, True),
    ],
)
def test_what_is_made_executable_or_writable(image: bytes, stack: bool, relocations: bool) -> None:
    assert elf.is_x86_64(image)
    demands = elf.demands(image)
    assert (demands.executable_stack, demands.text_relocations) == (stack, relocations)


def test_libraries_and_where_they_are_looked_for() -> None:
    for tag in (elf.DT_RPATH, elf.DT_RUNPATH):
        image = library(needed=["libz.so.1", "libc.so.6"], search=(tag, "$ORIGIN:/opt/lib"))
        demands = elf.demands(image)
        assert demands.libraries == ("libz.so.1", "libc.so.6")
        assert demands.search_paths == ("$ORIGIN", "/opt/lib")
    assert elf.demands(library()).search_paths == ()


VERSIONS = {
    "libm.so.6": {"GLIBC_2.29": ["exp", "log"]},
    "libc.so.6": {"GLIBC_2.34": ["dlsym"], "GLIBC_2.36": ["arc4random"], "GLIBC_2.2.5": ["exit"]},
}


def test_versions_and_their_symbols() -> None:
    versions = elf.demands(library(versions=VERSIONS, weak=["GLIBC_2.36"])).versions
    assert versions == {
        "GLIBC_2.29": ("exp", "log"),
        "GLIBC_2.34": ("dlsym",),
        "GLIBC_2.2.5": ("exit",),
    }


def test_one_version_of_two_libraries() -> None:
    both = {"libm.so.6": {"GLIBC_2.2.5": ["sin"]}, "libc.so.6": {"GLIBC_2.2.5": ["exit"]}}
    assert elf.demands(library(versions=both)).versions == {"GLIBC_2.2.5": ("sin", "exit")}


def test_without_section_headers_versions_are_told_yet() -> None:
    versions = elf.demands(library(versions=VERSIONS, sections=False)).versions
    assert versions == dict.fromkeys(("GLIBC_2.29", "GLIBC_2.34", "GLIBC_2.36", "GLIBC_2.2.5"), ())


@pytest.mark.parametrize(("levels", "level"), [(None, 0), (1, 1), (7, 7)])
def test_the_level_of_x86_64(levels: int | None, level: int) -> None:
    assert elf.demands(library(levels=levels)).levels == level


@pytest.mark.parametrize("lost", [1, 100, 300, 500])
def test_a_library_that_is_cut_short_is_told(lost: int) -> None:
    image = library(versions=VERSIONS)
    for whole in (image, library(versions=VERSIONS, sections=False)):
        with pytest.raises(elf.CutShort):
            elf.demands(whole[:-lost])


def test_only_x86_64_has_a_level() -> None:
    image = library(stack=RW)
    assert not elf.is_x86_64(image[:18] + b"\xb7\x00" + image[20:])
    assert not elf.is_x86_64(b"MZ" + image[2:])
    # An object file: only linked files have segments to load.
    assert not elf.is_x86_64(image[:16] + b"\x01" + image[17:])
