"""Parse ELF files for x86-64: the libraries, symbols and processor level that they require.

The format is in the System V ABI, chapters 4 and 5, in its supplement for x86-64, and in glibc's
elf.h (the GNU extensions). The package theano-fast contains this module too, because environments
need not contain binutils.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

Part = TypeVar("Part")

# The first bytes of a file (e_ident): the magic number, 64 bits, little-endian.
IDENTIFICATION = b"\x7fELF\x02\x01"
# The bytes at KIND_OFFSET (Elf64_Ehdr): the type, ET_EXEC or ET_DYN, and the machine, EM_X86_64.
KIND_OFFSET, KINDS = 16, (b"\x02\x00\x3e\x00", b"\x03\x00\x3e\x00")

PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_GNU_STACK, PF_X = 1, 2, 4, 0x6474E551, 1
DT_NULL, DT_NEEDED, DT_STRTAB, DT_SONAME, DT_RPATH, DT_TEXTREL = 0, 1, 5, 14, 15, 22
DT_RUNPATH, DT_FLAGS, DF_TEXTREL, DT_VERNEED, DT_VERNEEDNUM = 29, 30, 4, 0x6FFFFFFE, 0x6FFFFFFF
VER_FLG_WEAK, SHT_DYNSYM, SHT_GNU_VERSYM, SHN_UNDEF = 2, 11, 0x6FFFFFFF, 0
# PROPERTY_NOTE is the type (NT_GNU_PROPERTY_TYPE_0) and the owner of a property note. ISA_NEEDED is
# the type and the size of the property GNU_PROPERTY_X86_ISA_1_NEEDED.
PROPERTY_NOTE, ISA_NEEDED = b"\x05\0\0\0GNU\0", b"\x02\x80\0\xc0\x04\0\0\0"


class ElfError(ValueError):
    """The file is not a library or program for x86-64, or it is truncated."""


@dataclass(frozen=True)
class Requirements:
    """The requirements of an ELF file.

    Attributes:
        soname: the name by which other files require this file (DT_SONAME); "" if it has none.
        libraries: the names of the libraries to load (DT_NEEDED).
        search_paths: the directories that the dynamic linker searches for these libraries before
            the system's (DT_RPATH, DT_RUNPATH).
        versions: the symbol versions that the libraries must define. The values are the symbols
            that need the version; they are empty if the file has no section headers. Weak versions
            are omitted.
        executable_stack: whether the file requires an executable stack.
        text_relocations: whether the dynamic linker must change the file's code.
        isa_levels: a bit mask of the required levels of x86-64. Bit 0 is the baseline. The mask is
            0 if the file does not declare levels.
    """

    soname: str
    libraries: tuple[str, ...]
    search_paths: tuple[str, ...]
    versions: Mapping[str, tuple[str, ...]]
    executable_stack: bool
    text_relocations: bool
    isa_levels: int


class _Segment(NamedTuple):
    """The first members of Elf64_Phdr."""

    kind: int
    flags: int
    offset: int
    address: int
    physical_address: int
    length: int


def is_x86_64(image: bytes) -> bool:
    """Return whether a file is a library or program for x86-64; its first 20 bytes suffice."""
    return image.startswith(IDENTIFICATION) and image[KIND_OFFSET : KIND_OFFSET + 4] in KINDS


def read_requirements(image: bytes) -> Requirements:
    """Read the requirements of a library or program for x86-64.

    Raises:
        ElfError: the file is not such a library or program, or it is truncated.
    """
    return _parse(image, _read_requirements)


def read_undefined_symbols(image: bytes) -> frozenset[str]:
    """Read the names of a file's undefined dynamic symbols.

    The result is empty if the file has no section headers.

    Raises:
        ElfError: the file is not a library or program for x86-64, or it is truncated.
    """
    return _parse(image, _read_undefined_symbols)


def _parse(image: bytes, parse: Callable[[bytes], Part]) -> Part:
    if not is_x86_64(image):
        raise ElfError("it is not a library or program for Linux on x86-64")
    try:
        return parse(image)
    except (struct.error, ValueError, LookupError) as error:
        raise ElfError(f"it is truncated: {error}") from error


def _read_requirements(image: bytes) -> Requirements:
    segments = _read_segments(image)
    entries = list(_read_dynamic_entries(image, segments))
    values = dict(entries)
    strings = _file_offset(values[DT_STRTAB], segments) if DT_STRTAB in values else 0

    def names(*tags: int) -> tuple[str, ...]:
        return tuple(_read_string(image, strings + value) for tag, value in entries if tag in tags)

    versions: dict[str, tuple[str, ...]] = {}
    if DT_VERNEED in values:
        offset = _file_offset(values[DT_VERNEED], segments)
        name_offsets = dict(_read_version_needs(image, offset, values[DT_VERNEEDNUM]))
        symbols = _read_versioned_symbols(image, name_offsets)
        for index, name_offset in name_offsets.items():
            version = _read_string(image, strings + name_offset)
            versions[version] = (*versions.get(version, ()), *symbols[index])
    # If a file has no such segment, the kernel and glibc make the stack executable.
    stack = [segment.flags for segment in segments if segment.kind == PT_GNU_STACK] or [PF_X]
    return Requirements(
        soname="".join(names(DT_SONAME)),
        libraries=names(DT_NEEDED),
        search_paths=tuple(
            path for paths in names(DT_RPATH, DT_RUNPATH) for path in paths.split(":")
        ),
        versions=versions,
        executable_stack=bool(stack[0] & PF_X),
        text_relocations=DT_TEXTREL in values or bool(values.get(DT_FLAGS, 0) & DF_TEXTREL),
        isa_levels=_read_isa_levels(image, segments),
    )


def _read_segments(image: bytes) -> list[_Segment]:
    """Read the program headers.

    Raises:
        ValueError: the file ends before its headers, sections or segments.
    """
    segments_offset, sections_offset = struct.unpack_from("<QQ", image, 32)
    size, count, section_size, section_count = struct.unpack_from("<HHHH", image, 54)
    segments = [
        _Segment(*struct.unpack_from("<IIQQQQ", image, segments_offset + i * size))
        for i in range(count)
    ]
    ends = [segments_offset + size * count, sections_offset + section_size * section_count]
    ends += [segment.offset + segment.length for segment in segments]
    if max(ends) > len(image):
        raise ValueError(f"it has {len(image)} of {max(ends)} bytes")
    return segments


def _file_offset(address: int, segments: list[_Segment]) -> int:
    """Convert an address in memory to an offset in the file."""
    for segment in segments:
        if (
            segment.kind == PT_LOAD
            and segment.address <= address < segment.address + segment.length
        ):
            return address - segment.address + segment.offset
    raise LookupError(f"no segment contains the address {address:#x}")


def _read_dynamic_entries(image: bytes, segments: list[_Segment]) -> Iterator[tuple[int, int]]:
    """Read the tag and value of each entry of the dynamic section (Elf64_Dyn)."""
    for segment in segments:
        if segment.kind == PT_DYNAMIC:
            length = segment.length - segment.length % 16
            for tag, value in struct.iter_unpack(
                "<qQ", image[segment.offset : segment.offset + length]
            ):
                if tag == DT_NULL:
                    return
                yield tag, value


def _read_version_needs(image: bytes, offset: int, count: int) -> Iterator[tuple[int, int]]:
    """Read the index and the name's offset of each version that is not weak (Elf64_Verneed)."""
    for _ in range(count):
        _, versions, _, first, next_library = struct.unpack_from("<HHIII", image, offset)
        version_offset = offset + first
        for _ in range(versions):
            _, flags, index, name, next_version = struct.unpack_from(
                "<IHHII", image, version_offset
            )
            if not flags & VER_FLG_WEAK:
                yield index, name
            version_offset += next_version
        offset += next_library


def _read_versioned_symbols(image: bytes, indices: Mapping[int, object]) -> dict[int, list[str]]:
    """Read the names of each version's dynamic symbols; none if the file has no section headers."""
    names: dict[int, list[str]] = {index: [] for index in indices}
    sections = _read_sections(image)
    for _, kind, _, _, start, length, link in sections:
        if kind == SHT_GNU_VERSYM:
            _, _, _, _, symbols, _, strings = sections[link]
            for i, index in enumerate(memoryview(image)[start : start + length].cast("H")):
                if index in names:
                    (name,) = struct.unpack_from("<I", image, symbols + 24 * i)
                    names[index].append(_read_string(image, sections[strings][4] + name))
    return names


def _read_undefined_symbols(image: bytes) -> frozenset[str]:
    sections = _read_sections(image)
    return frozenset(
        _read_string(image, sections[link][4] + name)
        for _, kind, _, _, offset, length, link in sections
        if kind == SHT_DYNSYM
        for name, _, _, section, _, _ in struct.iter_unpack(
            "<IBBHQQ", image[offset : offset + length]
        )
        if section == SHN_UNDEF and name
    )


def _read_sections(image: bytes) -> list[tuple[int, ...]]:
    """Read the first members of each section header (Elf64_Shdr)."""
    (offset,) = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    return [struct.unpack_from("<IIQQQQI", image, offset + i * size) for i in range(count)]


def _read_isa_levels(image: bytes, segments: list[_Segment]) -> int:
    """Read the required levels of x86-64 from the property note; return 0 if it has none."""
    for segment in segments:
        note = (
            image[segment.offset : segment.offset + segment.length]
            if segment.kind == PT_NOTE
            else b""
        )
        if PROPERTY_NOTE in note and ISA_NEEDED in note:
            (bits,) = struct.unpack_from("<I", note, note.index(ISA_NEEDED) + len(ISA_NEEDED))
            return int(bits)
    return 0


def _read_string(image: bytes, start: int) -> str:
    return image[start : image.index(b"\0", start)].decode()
