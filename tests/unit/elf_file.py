"""Generate ELF shared libraries without code, for tests; elf.h defines the numbers."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping

# Flags of a segment: readable and writable, without or with permission to execute.
RW, RWE = 6, 7
# The memory address to which the start of the file is mapped.
BASE = 0x10000


def make_library(  # noqa: PLR0913 (one parameter for each optional part of a library)
    *,
    stack: int | None = RW,
    needed: Collection[str] = (),
    search: tuple[int, str] | None = None,
    versions: Mapping[str, Mapping[str, Collection[str]]] | None = None,
    weak: Collection[str] = (),
    levels: int | None = None,
    entries: Collection[tuple[int, int]] = (),
    sections: bool = True,
) -> bytes:
    """Return the bytes of a library for x86-64.

    Args:
        stack: the flags of PT_GNU_STACK; None omits the header.
        needed: the sonames of the needed libraries (DT_NEEDED).
        search: the tag DT_RPATH or DT_RUNPATH, and the search path for libraries.
        versions: the undefined symbols by library and version, such as
            {"libc.so.6": {"GLIBC_2.34": ["dlsym"]}}.
        weak: the versions that the library requires weakly (VER_FLG_WEAK).
        levels: the bits of GNU_PROPERTY_X86_ISA_1_NEEDED; None omits the property.
        entries: additional entries of the dynamic section, as (tag, value).
        sections: whether the library has section headers.
    """
    strings = bytearray(b"\0")

    def add_string(value: str) -> int:
        strings.extend(value.encode() + b"\0")
        return len(strings) - len(value) - 1

    symbols, indices, version_needs = bytes(24), [0], b""
    for file, symbols_by_version in (versions or {}).items():
        auxiliary = b""
        for version, names in symbols_by_version.items():
            index, flags = 2 + len(set(indices)), 2 if version in weak else 0
            auxiliary += struct.pack("<IHHII", 0, flags, index, add_string(version), 16)
            for name in names:
                symbols += struct.pack("<IBBHQQ", add_string(name), 0x12, 0, 0, 0, 0)
                indices.append(index)
        version_needs += (
            struct.pack(
                "<HHIII", 1, len(symbols_by_version), add_string(file), 16, 16 + len(auxiliary)
            )
            + auxiliary
        )
    dynamic = [(1, add_string(name)) for name in needed]
    dynamic += [(search[0], add_string(search[1]))] if search else []

    count = 2 + (stack is not None) + (levels is not None)
    body, start = bytearray(), 64 + 56 * count

    def append(content: bytes) -> int:
        body.extend(bytes(-len(body) % 8))
        body.extend(content)
        return start + len(body) - len(content)

    strings_offset, symbols_offset = append(bytes(strings)), append(symbols)
    indices_offset = append(struct.pack(f"<{len(indices)}H", *indices))
    dynamic.append((5, BASE + strings_offset))
    if versions:
        dynamic += [(0x6FFFFFFE, BASE + append(version_needs)), (0x6FFFFFFF, len(versions))]
    # Readers must ignore entries after DT_NULL, such as the last entry, DT_TEXTREL (22).
    table = b"".join(struct.pack("<qQ", *entry) for entry in (*dynamic, *entries, (0, 0), (22, 0)))
    segments = [(2, RW, append(table), len(table))]
    if levels is not None:
        used = struct.pack("<III4x", 0xC0010002, 4, 0xF)
        note = used + struct.pack("<III4x", 0xC0008002, 4, levels)
        note = struct.pack("<III4s", 4, len(note), 5, b"GNU\0") + note
        segments.append((4, 4, append(note), len(note)))
    if stack is not None:
        segments.append((0x6474E551, stack, 0, 0))
    section_headers = (
        bytes(64),
        struct.pack("<IIQQQQIIQQ", 0, 11, 2, 0, symbols_offset, len(symbols), 2, 1, 8, 24),
        struct.pack("<IIQQQQIIQQ", 0, 3, 2, 0, strings_offset, len(strings), 0, 0, 1, 0),
        struct.pack(
            "<IIQQQQIIQQ", 0, 0x6FFFFFFF, 2, 0, indices_offset, 2 * len(indices), 1, 0, 2, 2
        ),
    )
    sections_offset = append(b"".join(section_headers)) if sections else 0
    segments.append((1, 5, 0, start + len(body)))
    identification = b"\x7fELF\x02\x01\x01" + bytes(9)
    sizes = (64, 56, count, 64, len(section_headers) if sections else 0, 0)
    file_header = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, sections_offset, 0, *sizes)
    program_headers = b"".join(
        struct.pack("<IIQQQQQQ", kind, flags, offset, BASE + offset, 0, length, length, 8)
        for kind, flags, offset, length in segments
    )
    return identification + file_header + program_headers + bytes(body)
