"""What a shared library asks of the process that loads it (System V ABI, chapters 4 and 5)."""

from __future__ import annotations

import struct

# ELF, 64 bits, little-endian; and at its offset EM_X86_64 (elf.h: Elf64_Ehdr).
IDENTIFICATION = b"\x7fELF\x02\x01"
MACHINE_OFFSET, MACHINE = 18, b"\x3e\x00"

PT_DYNAMIC, PT_GNU_STACK, PF_X = 2, 0x6474E551, 1
DT_NULL, DT_TEXTREL, DT_FLAGS, DF_TEXTREL = 0, 22, 30, 4


class CutShort(ValueError):
    """The file ends before what its headers say is in it."""


def is_x86_64(image: bytes) -> bool:
    """Whether a file's first bytes are those of a library or program for Linux on x86-64."""
    machine = image[MACHINE_OFFSET : MACHINE_OFFSET + len(MACHINE)]
    return image.startswith(IDENTIFICATION) and machine == MACHINE


def demands(image: bytes) -> tuple[bool, bool]:
    """Whether an ELF file of x86-64 demands an executable stack, and has text relocations.

    Raises:
        CutShort: it is not whole.
    """
    try:
        segments_at, sections_at = struct.unpack_from("<QQ", image, 32)
        size, count, section_size, sections = struct.unpack_from("<HHHH", image, 54)
        headers = [
            struct.unpack_from("<IIQQQQ", image, segments_at + i * size) for i in range(count)
        ]
    except struct.error as error:
        raise CutShort(str(error)) from error
    ends = [segments_at + size * count, sections_at + section_size * sections]
    ends += [offset + length for _, _, offset, _, _, length in headers]
    if max(ends) > len(image):
        raise CutShort(f"it has {len(image)} bytes")
    # Without the header, the kernel's and glibc's default for the architecture: executable.
    stack = [flags for kind, flags, *_ in headers if kind == PT_GNU_STACK] or [PF_X]
    relocations = False
    for kind, _, offset, _, _, length in headers:
        if kind == PT_DYNAMIC:
            entries = struct.iter_unpack("<qQ", image[offset : offset + length - length % 16])
            for tag, value in entries:
                if tag == DT_NULL:
                    break
                relocations |= tag == DT_TEXTREL or (tag == DT_FLAGS and bool(value & DF_TEXTREL))
    return bool(stack[0] & PF_X), relocations
