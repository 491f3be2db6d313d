"""Read ELF files: the dynamic section's DT_SONAME and DT_NEEDED, and undefined symbols.

This reader supports 64-bit little-endian files only (System V ABI, chapters 4 and 5). It exists
because an environment need not contain binutils.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Part = TypeVar("Part")

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NULL, DT_NEEDED, DT_STRTAB, DT_SONAME = 0, 1, 5, 14
SHT_DYNSYM, SHN_UNDEF = 11, 0
# The first bytes of a 64-bit little-endian file.
MAGIC = b"\x7fELF\x02\x01"


class ElfError(ValueError):
    """The file is not a 64-bit little-endian ELF file, or is truncated."""


@dataclass(frozen=True)
class Dynamic:
    """A library's own name ("" if it has none) and the names of the libraries that it needs."""

    soname: str
    needed: tuple[str, ...]


def read(path: str | Path) -> Dynamic:
    """Read the dynamic section of the ELF file at path.

    Raises ElfError for another kind of file, OSError if the file cannot be read.
    """
    return _parse(path, _read_dynamic)


def is_elf(path: str | Path) -> bool:
    """Return whether a file is a 64-bit little-endian ELF file; False if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def undefined(path: str | Path) -> frozenset[str]:
    """Return the names of the undefined dynamic symbols of the ELF file at path.

    Raises ElfError for another kind of file, OSError if the file cannot be read.
    """
    return _parse(path, _read_undefined)


def _parse(path: str | Path, part: Callable[[bytes], Part]) -> Part:
    image = Path(path).read_bytes()
    if not image.startswith(MAGIC):
        raise ElfError(f"{path} is not a 64-bit little-endian ELF file")
    try:
        return part(image)
    except (struct.error, IndexError, ValueError) as error:
        raise ElfError(f"{path} is not a complete ELF file: {error}") from error


def _read_undefined(image: bytes) -> frozenset[str]:
    (headers_at,) = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    sections = [struct.unpack_from("<IIQQQQI", image, headers_at + i * size) for i in range(count)]
    names = set()
    for _, kind, _, _, offset, length, link in sections:
        if kind == SHT_DYNSYM:
            strings_at = sections[link][4]
            symbols = struct.iter_unpack("<IBBHQQ", image[offset : offset + length])
            names |= {
                _string(image, strings_at + name)
                for name, _, _, section, _, _ in symbols
                if section == SHN_UNDEF and name
            }
    return frozenset(names)


def _string(image: bytes, start: int) -> str:
    return image[start : image.index(b"\0", start)].decode()


def _read_dynamic(image: bytes) -> Dynamic:
    (headers_at,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    segments = [struct.unpack_from("<IIQQQQ", image, headers_at + i * size) for i in range(count)]
    entries: list[tuple[int, int]] = []
    for kind, _, offset, _, _, length in segments:
        if kind == PT_DYNAMIC:
            if offset + length > len(image):
                raise ValueError("its dynamic section is cut off")
            entries = list(struct.iter_unpack("<qQ", image[offset : offset + length]))
    tags = [tag for tag, _ in entries]
    entries = entries[: tags.index(DT_NULL)] if DT_NULL in tags else entries
    names = dict(entries)
    if DT_STRTAB not in names:
        return Dynamic("", ())
    # DT_STRTAB is an address in memory. The segment that contains it gives the offset in the file.
    strings_at = next(
        names[DT_STRTAB] - address + offset
        for kind, _, offset, address, _, length in segments
        if kind == PT_LOAD and address <= names[DT_STRTAB] < address + length
    )
    soname = _string(image, strings_at + names[DT_SONAME]) if DT_SONAME in names else ""
    needed = (_string(image, strings_at + value) for tag, value in entries if tag == DT_NEEDED)
    return Dynamic(soname, tuple(needed))
