"""Write shared libraries that consist of headers (elf.h)."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping

RW, RWE = 6, 7
# The memory address of the start of the file.
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
    """Make a library for x86-64.

    Args:
        stack: the flags of PT_GNU_STACK; None omits the header.
        needed: the names of the needed libraries.
        search: a tag, DT_RPATH or DT_RUNPATH, and the search path.
        versions: the symbols, by needed library and version.
        weak: the versions whose references are weak.
        levels: GNU_PROPERTY_X86_ISA_1_NEEDED.
        entries: more entries of the dynamic section.
        sections: whether the library has section headers.
    """
    strings = bytearray(b"\0")

    def text(value: str) -> int:
        strings.extend(value.encode() + b"\0")
        return len(strings) - len(value) - 1

    symbols, indices, needs = bytes(24), [0], b""
    for file, asked in (versions or {}).items():
        auxiliary = b""
        for version, names in asked.items():
            index, flags = 2 + len(set(indices)), 2 if version in weak else 0
            auxiliary += struct.pack("<IHHII", 0, flags, index, text(version), 16)
            for name in names:
                symbols += struct.pack("<IBBHQQ", text(name), 0x12, 0, 0, 0, 0)
                indices.append(index)
        needs += (
            struct.pack("<HHIII", 1, len(asked), text(file), 16, 16 + len(auxiliary)) + auxiliary
        )
    dynamic = [(1, text(name)) for name in needed]
    dynamic += [(search[0], text(search[1]))] if search else []

    count = 2 + (stack is not None) + (levels is not None)
    body, start = bytearray(), 64 + 56 * count

    def append(content: bytes) -> int:
        body.extend(bytes(-len(body) % 8))
        body.extend(content)
        return start + len(body) - len(content)

    strings_at, symbols_at = append(bytes(strings)), append(symbols)
    indices_at = append(struct.pack(f"<{len(indices)}H", *indices))
    dynamic.append((5, BASE + strings_at))
    if versions:
        dynamic += [(0x6FFFFFFE, BASE + append(needs)), (0x6FFFFFFF, len(versions))]
    # Entries after the end (DT_NULL) do not count.
    table = b"".join(struct.pack("<qQ", *entry) for entry in (*dynamic, *entries, (0, 0), (22, 0)))
    segments = [(2, RW, append(table), len(table))]
    if levels is not None:
        used = struct.pack("<III4x", 0xC0010002, 4, 0xF)
        note = used + struct.pack("<III4x", 0xC0008002, 4, levels)
        note = struct.pack("<III4s", 4, len(note), 5, b"GNU\0") + note
        segments.append((4, 4, append(note), len(note)))
    if stack is not None:
        segments.append((0x6474E551, stack, 0, 0))
    headers = (
        bytes(64),
        struct.pack("<IIQQQQIIQQ", 0, 11, 2, 0, symbols_at, len(symbols), 2, 1, 8, 24),
        struct.pack("<IIQQQQIIQQ", 0, 3, 2, 0, strings_at, len(strings), 0, 0, 1, 0),
        struct.pack("<IIQQQQIIQQ", 0, 0x6FFFFFFF, 2, 0, indices_at, 2 * len(indices), 1, 0, 2, 2),
    )
    sections_at = append(b"".join(headers)) if sections else 0
    segments.append((1, 5, 0, start + len(body)))
    identification = b"\x7fELF\x02\x01\x01" + bytes(9)
    sizes = (64, 56, count, 64, len(headers) if sections else 0, 0)
    head = struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, sections_at, 0, *sizes)
    program = b"".join(
        struct.pack("<IIQQQQQQ", kind, flags, at, BASE + at, 0, length, length, 8)
        for kind, flags, at, length in segments
    )
    return identification + head + program + bytes(body)
