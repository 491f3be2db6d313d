from __future__ import annotations

import struct

import pytest

from builder.source import elf

RWE, RW = 7, 6


def library(stack: int | None, *entries: tuple[int, int]) -> bytes:
    """A file of headers alone: PT_GNU_STACK with these flags, and a dynamic section."""
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in (*entries, (0, 0), (22, 0)))
    count = 1 if stack is None else 2
    start = 64 + 56 * count
    headers = struct.pack("<IIQQQQQQ", 2, RW, start, 0, 0, len(dynamic), len(dynamic), 8)
    if stack is not None:
        headers += struct.pack("<IIQQQQQQ", 0x6474E551, stack, 0, 0, 0, 0, 0, 16)
    identification = b"\x7fELF\x02\x01\x01" + bytes(9)
    head = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, count, 64, 0, 0)
    return identification + head + headers + dynamic


@pytest.mark.parametrize(
    ("image", "demands"),
    [
        (library(RW), (False, False)),
        (library(RWE), (True, False)),
        # As of an assembler's file without a note.
        (library(None), (True, False)),
        (library(RW, (22, 0)), (False, True)),
        (library(RW, (30, 4)), (False, True)),
        (library(RW, (30, 8), (1, 22)), (False, False)),
        (library(RWE, (30, 12)), (True, True)),
    ],
)
def test_what_a_library_demands(image: bytes, demands: tuple[bool, bool]) -> None:
    assert elf.is_x86_64(image)
    assert elf.demands(image) == demands


@pytest.mark.parametrize("lost", [1, 100, 190])
def test_a_library_that_is_cut_short_is_told(lost: int) -> None:
    with pytest.raises(elf.CutShort):
        elf.demands(library(RW)[:-lost])


def test_only_x86_64_is_told() -> None:
    image = library(RW)
    assert not elf.is_x86_64(image[:18] + b"\xb7\x00" + image[20:])
    assert not elf.is_x86_64(b"MZ" + image[2:])
