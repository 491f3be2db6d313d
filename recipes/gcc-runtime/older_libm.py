"""Let what asks for the exp, log and pow of glibc 2.29 take those before.

``older_libm.py FILE...``: the functions got a new version when they lost matherr, an old way to tell
errors; glibc keeps both. The library is named in .gnu.version_r (gABI, "Symbol Versioning": the
hash of the version in the first four bytes of an entry of 16, its name in the 9th to 12th).
"""

import struct
import sys
from pathlib import Path

NEW, OLD = b"GLIBC_2.29", b"GLIBC_2.2.5"


def digest(name):
    """The hash of a name (gABI, "Hash Table Section")."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value


for file in map(Path, sys.argv[1:]):
    content = bytearray(file.read_bytes())
    # ELF64: where the table of sections is, how long an entry and how many.
    [table] = struct.unpack_from("<Q", content, 0x28)
    size, count = struct.unpack_from("<2H", content, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, table + n * size) for n in range(count)]
    # SHT_GNU_verneed, whose sh_link is the table of its strings.
    [(_, _, _, _, needs, length, strings, *_)] = [each for each in sections if each[1] == 0x6FFFFFFE]
    names = content[sections[strings][4] :][: sections[strings][5]]
    found = content.find(struct.pack("<I", digest(NEW)), needs, needs + length)
    assert found >= 0, f"{file} asks for nothing of {NEW.decode()}"
    struct.pack_into("<I", content, found, digest(OLD))
    struct.pack_into("<I", content, found + 8, names.index(OLD + b"\0"))
    file.write_bytes(content)
