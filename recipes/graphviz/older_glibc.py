"""Let a library take the exp and the log2 of every glibc, not those of glibc 2.29 and newer.

They differ in what they do about errno. Its needs of versions are entries of 16 bytes (elf(5)), which
begin with the hash of a version's name and have the name's place at the eighth byte.
"""

import struct
import sys
from pathlib import Path


def entry(image, version):
    """Where the first entry of a version begins."""
    value = 0
    for byte in version:
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return image.index(struct.pack("<I", value))


file = Path(sys.argv[1])
image = bytearray(file.read_bytes())
new, old = entry(image, b"GLIBC_2.29"), entry(image, b"GLIBC_2.2.5")
image[new : new + 4] = image[old : old + 4]
image[new + 8 : new + 12] = image[old + 8 : old + 12]
file.write_bytes(image)
