"""Make a library call the old versions of exp and log2, which each glibc has.

``older_glibc.py FILE`` edits the file in place. The old and the new versions of these functions set
errno in different ways. A binary lists the versions that it needs in entries of 16 bytes (elf(5)).
Bytes 0 to 3 contain the version's hash. Bytes 8 to 11 contain the offset of its name.
"""

import struct
import sys
from pathlib import Path


def find_entry(image, version):
    """Find the first entry of a version; return its offset."""
    value = 0
    for byte in version:
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return image.index(struct.pack("<I", value))


file = Path(sys.argv[1])
image = bytearray(file.read_bytes())
new, old = find_entry(image, b"GLIBC_2.29"), find_entry(image, b"GLIBC_2.2.5")
image[new : new + 4] = image[old : old + 4]
image[new + 8 : new + 12] = image[old + 8 : old + 12]
file.write_bytes(image)
