"""What a library or program asks of the process that loads it, and of the machine.

System V ABI, chapters 4 and 5, its supplement for x86-64, and the GNU extensions in elf.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

# ELF, 64 bits, little-endian; and at its offset ET_EXEC or ET_DYN, EM_X86_64 (elf.h: Elf64_Ehdr).
IDENTIFICATION = b"\x7fELF\x02\x01"
KIND_OFFSET, KINDS = 16, (b"\x02\x00\x3e\x00", b"\x03\x00\x3e\x00")

PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_GNU_STACK, PF_X = 1, 2, 4, 0x6474E551, 1
DT_NULL, DT_NEEDED, DT_STRTAB, DT_RPATH, DT_TEXTREL, DT_RUNPATH = 0, 1, 5, 15, 22, 29
DT_FLAGS, DF_TEXTREL, DT_VERNEED, DT_VERNEEDNUM = 30, 4, 0x6FFFFFFE, 0x6FFFFFFF
VER_FLG_WEAK, SHT_GNU_VERSYM = 2, 0x6FFFFFFF
# What precedes the properties in a note, its kind and owner; and one of them, with its size.
PROPERTIES, ISA_NEEDED = b"\x05\0\0\0GNU\0", b"\x02\x80\0\xc0\x04\0\0\0"


class CutShort(ValueError):
    """The file ends before what its headers say is in it."""


@dataclass(frozen=True)
class Demands:
    """What an ELF file asks for.

    Attributes:
        libraries: the names of those to be loaded with it.
        search_paths: where they are looked for first.
        versions: what versions these must have, and the symbols that are the reason, as far as
            the file names them. What it can do without (weak references) is not among them.
        levels: a bit for each level of x86-64 that it needs, if it says so; the baseline's first.
    """

    libraries: tuple[str, ...]
    search_paths: tuple[str, ...]
    versions: Mapping[str, tuple[str, ...]]
    executable_stack: bool
    text_relocations: bool
    levels: int


class _Segment(NamedTuple):
    """The first members of Elf64_Phdr."""

    kind: int
    flags: int
    offset: int
    address: int
    physical: int
    length: int


def is_x86_64(image: bytes) -> bool:
    """Whether a file's first bytes are those of a library or program for Linux on x86-64."""
    return image.startswith(IDENTIFICATION) and image[KIND_OFFSET : KIND_OFFSET + 4] in KINDS


def demands(image: bytes) -> Demands:
    """What a library or program for x86-64 asks for.

    Raises:
        CutShort: it is not whole.
    """
    try:
        return _demands(image)
    except (struct.error, ValueError, LookupError) as error:
        raise CutShort(str(error)) from error


def _demands(image: bytes) -> Demands:
    segments = _segments(image)
    entries = list(_dynamic(image, segments))
    values = dict(entries)
    strings = _place(values[DT_STRTAB], segments) if DT_STRTAB in values else 0

    def names(*tags: int) -> tuple[str, ...]:
        return tuple(_string(image, strings + value) for tag, value in entries if tag in tags)

    versions: dict[str, tuple[str, ...]] = {}
    if DT_VERNEED in values:
        at = _place(values[DT_VERNEED], segments)
        needed = dict(_needed(image, at, values[DT_VERNEEDNUM]))
        symbols = _symbols(image, needed)
        for index, name in needed.items():
            version = _string(image, strings + name)
            versions[version] = (*versions.get(version, ()), *symbols[index])
    # Without the header, the kernel's and glibc's default for the architecture: executable.
    stack = [part.flags for part in segments if part.kind == PT_GNU_STACK] or [PF_X]
    return Demands(
        libraries=names(DT_NEEDED),
        search_paths=tuple(
            path for paths in names(DT_RPATH, DT_RUNPATH) for path in paths.split(":")
        ),
        versions=versions,
        executable_stack=bool(stack[0] & PF_X),
        text_relocations=DT_TEXTREL in values or bool(values.get(DT_FLAGS, 0) & DF_TEXTREL),
        levels=_levels(image, segments),
    )


def _segments(image: bytes) -> list[_Segment]:
    segments_at, sections_at = struct.unpack_from("<QQ", image, 32)
    size, count, section_size, sections = struct.unpack_from("<HHHH", image, 54)
    found = [
        _Segment(*struct.unpack_from("<IIQQQQ", image, segments_at + i * size))
        for i in range(count)
    ]
    ends = [segments_at + size * count, sections_at + section_size * sections]
    ends += [part.offset + part.length for part in found]
    if max(ends) > len(image):
        raise CutShort(f"it has {len(image)} bytes")
    return found


def _place(address: int, segments: list[_Segment]) -> int:
    """Where in the file is what is at an address in memory."""
    for part in segments:
        if part.kind == PT_LOAD and part.address <= address < part.address + part.length:
            return address - part.address + part.offset
    raise LookupError(f"nothing is at {address:#x}")


def _dynamic(image: bytes, segments: list[_Segment]) -> Iterator[tuple[int, int]]:
    for part in segments:
        if part.kind == PT_DYNAMIC:
            whole = part.length - part.length % 16
            for tag, value in struct.iter_unpack("<qQ", image[part.offset : part.offset + whole]):
                if tag == DT_NULL:
                    return
                yield tag, value


def _needed(image: bytes, at: int, count: int) -> Iterator[tuple[int, int]]:
    """The index of each version that is needed, and where its name is (Elf64_Verneed)."""
    for _ in range(count):
        _, versions, _, first, following = struct.unpack_from("<HHIII", image, at)
        version_at = at + first
        for _ in range(versions):
            _, flags, index, name, step = struct.unpack_from("<IHHII", image, version_at)
            if not flags & VER_FLG_WEAK:
                yield index, name
            version_at += step
        at += following


def _symbols(image: bytes, indices: Mapping[int, object]) -> dict[int, list[str]]:
    """The dynamic symbols that have these versions; none where there are no section headers."""
    found: dict[int, list[str]] = {index: [] for index in indices}
    (at,) = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    sections = [struct.unpack_from("<IIQQQQI", image, at + i * size) for i in range(count)]
    for _, kind, _, _, offset, length, link in sections:
        if kind == SHT_GNU_VERSYM:
            _, _, _, _, symbols_at, _, strings = sections[link]
            for i, index in enumerate(memoryview(image)[offset : offset + length].cast("H")):
                if index in found:
                    (name,) = struct.unpack_from("<I", image, symbols_at + 24 * i)
                    found[index].append(_string(image, sections[strings][4] + name))
    return found


def _levels(image: bytes, segments: list[_Segment]) -> int:
    for part in segments:
        note = image[part.offset : part.offset + part.length] if part.kind == PT_NOTE else b""
        if PROPERTIES in note and ISA_NEEDED in note:
            (bits,) = struct.unpack_from("<I", note, note.index(ISA_NEEDED) + len(ISA_NEEDED))
            return int(bits)
    return 0


def _string(image: bytes, start: int) -> str:
    return image[start : image.index(b"\0", start)].decode()
