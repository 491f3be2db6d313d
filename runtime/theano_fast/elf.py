"""What a shared library says of itself: its dynamic section and the symbols it is to be given.

Only what this package needs of the format (System V ABI, chapters 4 and 5): 64-bit little-endian
files, the entries DT_NEEDED and DT_SONAME, the table of dynamic symbols. The environment has no
binutils of its own.
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


class ElfError(ValueError):
    """The file is no 64-bit little-endian ELF file, or is cut short."""


@dataclass(frozen=True)
class Dynamic:
    """A library's own name, "" where it has none, and the names of the libraries it needs."""

    soname: str
    needed: tuple[str, ...]


def read(path: str | Path) -> Dynamic:
    """Read the dynamic section of the ELF file at path.

    Raises ElfError for another kind of file, OSError if it cannot be read.
    """
    return _parse(path, _dynamic)


def undefined(path: str | Path) -> frozenset[str]:
    """Return the names of the symbols that the ELF file at path takes from other libraries.

    Raises ElfError for another kind of file, OSError if it cannot be read.
    """
    return _parse(path, _undefined)


def _parse(path: str | Path, part: Callable[[bytes], Part]) -> Part:
    image = Path(path).read_bytes()
    if image[:6] != b"\x7fELF\x02\x01":
        raise ElfError(f"{path} is not a 64-bit little-endian ELF file")
    try:
        return part(image)
    except (struct.error, IndexError, ValueError) as error:
        raise ElfError(f"{path} is not a whole ELF file: {error}") from error


def _undefined(image: bytes) -> frozenset[str]:
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


def _dynamic(image: bytes) -> Dynamic:
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
    # DT_STRTAB is an address in memory; the segment that holds it gives the place in the file.
    strings_at = next(
        names[DT_STRTAB] - address + offset
        for kind, _, offset, address, _, length in segments
        if kind == PT_LOAD and address <= names[DT_STRTAB] < address + length
    )
    soname = _string(image, strings_at + names[DT_SONAME]) if DT_SONAME in names else ""
    needed = (_string(image, strings_at + value) for tag, value in entries if tag == DT_NEEDED)
    return Dynamic(soname, tuple(needed))
