"""Make binaries call the old versions of exp, log and pow, which each glibc has.

``older_libm.py FILE...`` edits the files in place. glibc 2.29 added new versions of these functions,
without matherr, an old interface for error handling. It keeps the old versions. A binary lists the
versions that it needs in its section .gnu.version_r. An entry of this list has 16 bytes: the version's
hash in bytes 0 to 3, and the offset of its name in bytes 8 to 11 (gABI, "Symbol Versioning"). The script
replaces the new version by the old version in the entry.
"""

import struct
import sys
from pathlib import Path

NEW, OLD = b"GLIBC_2.29", b"GLIBC_2.2.5"
# The type of the section .gnu.version_r (gABI, "Sections").
SHT_GNU_VERNEED = 0x6FFFFFFE


def hash_name(name):
    """Return the ELF hash of a name (gABI, "Hash Table Section")."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value


for file in map(Path, sys.argv[1:]):
    content = bytearray(file.read_bytes())
    # Header of ELF64: the offset of the section header table, the size and the number of its entries.
    [table] = struct.unpack_from("<Q", content, 0x28)
    size, count = struct.unpack_from("<2H", content, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, table + n * size) for n in range(count)]
    # The field sh_link is the index of the section with the names.
    [(_, _, _, _, start, length, link, *_)] = [
        section for section in sections if section[1] == SHT_GNU_VERNEED
    ]
    names = content[sections[link][4] :][: sections[link][5]]
    entry = content.find(struct.pack("<I", hash_name(NEW)), start, start + length)
    assert entry >= 0, f"{file} needs no symbol of {NEW.decode()}"
    struct.pack_into("<I", content, entry, hash_name(OLD))
    struct.pack_into("<I", content, entry + 8, names.index(OLD + b"\0"))
    file.write_bytes(content)
