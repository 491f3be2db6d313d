"""Test the parser of ELF files: required libraries, versions, search paths, and truncated files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from elf_file import RW, RWE, make_library

from builder.common import elf


@pytest.mark.parametrize(
    ("image", "stack", "relocations"),
    [
        (make_library(), False, False),
        (make_library(stack=RWE), True, False),
        # Without PT_GNU_STACK, as in assembled files, the stack is executable.
        (make_library(stack=None), True, False),
        # DT_TEXTREL (22); in DT_FLAGS (30), the bit DF_TEXTREL (4) but not DF_BIND_NOW (8).
        (make_library(entries=[(22, 0)]), False, True),
        (make_library(entries=[(30, 4)]), False, True),
        (make_library(entries=[(30, 8)], needed=["t" * 22]), False, False),
        (make_library(stack=RWE, entries=[(30, 12)]), True, True),
    ],
)
def test_executable_stacks_and_text_relocations_are_recognized(
    image: bytes, stack: bool, relocations: bool
) -> None:
    assert elf.is_x86_64(image)
    required = elf.read_requirements(image)
    assert (required.executable_stack, required.text_relocations) == (stack, relocations)


def test_needed_libraries_and_search_paths_are_read() -> None:
    for tag in (elf.DT_RPATH, elf.DT_RUNPATH):
        image = make_library(needed=["libz.so.1", "libc.so.6"], search=(tag, "$ORIGIN:/opt/lib"))
        required = elf.read_requirements(image)
        assert required.libraries == ("libz.so.1", "libc.so.6")
        assert required.search_paths == ("$ORIGIN", "/opt/lib")
    assert elf.read_requirements(make_library()).search_paths == ()


VERSIONS = {
    "libm.so.6": {"GLIBC_2.29": ["exp", "log"]},
    "libc.so.6": {"GLIBC_2.34": ["dlsym"], "GLIBC_2.36": ["arc4random"], "GLIBC_2.2.5": ["exit"]},
}


def test_required_versions_have_symbols_and_weak_versions_are_omitted() -> None:
    versions = elf.read_requirements(make_library(versions=VERSIONS, weak=["GLIBC_2.36"])).versions
    assert versions == {
        "GLIBC_2.29": ("exp", "log"),
        "GLIBC_2.34": ("dlsym",),
        "GLIBC_2.2.5": ("exit",),
    }


def test_symbols_of_one_version_in_two_libraries_are_joined() -> None:
    versions = {"libm.so.6": {"GLIBC_2.2.5": ["sin"]}, "libc.so.6": {"GLIBC_2.2.5": ["exit"]}}
    assert elf.read_requirements(make_library(versions=versions)).versions == {
        "GLIBC_2.2.5": ("sin", "exit")
    }


def test_versions_without_section_headers_have_no_symbols() -> None:
    versions = elf.read_requirements(make_library(versions=VERSIONS, sections=False)).versions
    assert versions == dict.fromkeys(("GLIBC_2.29", "GLIBC_2.34", "GLIBC_2.36", "GLIBC_2.2.5"), ())


@pytest.mark.parametrize(("levels", "level"), [(None, 0), (1, 1), (7, 7)])
def test_the_required_levels_of_x86_64_are_read(levels: int | None, level: int) -> None:
    assert elf.read_requirements(make_library(levels=levels)).isa_levels == level


@pytest.mark.parametrize("lost_bytes", [1, 100, 300, 500])
def test_a_truncated_library_raises(lost_bytes: int) -> None:
    image = make_library(versions=VERSIONS)
    for complete in (image, make_library(versions=VERSIONS, sections=False)):
        with pytest.raises(elf.ElfError):
            elf.read_requirements(complete[:-lost_bytes])


def test_only_linked_files_for_x86_64_are_accepted() -> None:
    image = make_library(stack=RW)
    assert not elf.is_x86_64(image[:18] + b"\xb7\x00" + image[20:])
    assert not elf.is_x86_64(b"MZ" + image[2:])
    # An object file (ET_REL, 1) is not linked.
    assert not elf.is_x86_64(image[:16] + b"\x01" + image[17:])


@pytest.fixture
def libc() -> bytes:
    """Return the bytes of the C library that this process loaded."""
    maps = Path("/proc/self/maps").read_text()
    [file] = set(re.findall(r"/\S+/libc[.-]\S*so\S*", maps))
    return Path(file).read_bytes()


def test_the_c_library_of_this_process_is_read(libc: bytes) -> None:
    required = elf.read_requirements(libc)
    assert required.soname == "libc.so.6"
    assert required.libraries == ("ld-linux-x86-64.so.2",)
    symbols = elf.read_undefined_symbols(libc)
    assert "__tls_get_addr" in symbols
    assert "malloc" not in symbols


@pytest.mark.parametrize("read", [elf.read_requirements, elf.read_undefined_symbols])
@pytest.mark.parametrize("length", [0, 5, 20, 70])
def test_a_truncated_library_or_a_linker_script_raises(
    read: Callable[[bytes], object], libc: bytes, length: int
) -> None:
    with pytest.raises(elf.ElfError):
        read(libc[:length])
    with pytest.raises(elf.ElfError, match="not a library"):
        read(b"GROUP ( libopenblas.so.0 )")
