"""Unpack all Debian packages in the working directory into the directory ``debian``.

A .deb is an ar archive that contains a tar archive of the package's files. This script needs only
Python, which each host has. It cannot use ar, because recipes/binutils runs this script to package ar.
"""

import io
import tarfile
from pathlib import Path

HEADER_SIZE = 60

for package in sorted(Path().glob("*.deb")):
    archive = package.read_bytes()
    offset = len("!<arch>\n")
    while offset < len(archive):
        header = archive[offset : offset + HEADER_SIZE]
        offset += HEADER_SIZE
        # ar(5): a header has the member's name in bytes 0 to 15, and its size in decimal in bytes 48 to
        # 57. Members begin at even offsets.
        size = int(header[48:58])
        if header.startswith(b"data.tar"):
            with tarfile.open(fileobj=io.BytesIO(archive[offset : offset + size])) as files:
                # Accept absolute links, which Python 3.14 refuses by default.
                files.extraction_filter = lambda member, _: member
                files.extractall("debian")
        offset += size + size % 2
