"""Unpack Debian's binary packages, those in this directory, into ``debian``.

A .deb is an ar archive with a tar archive of its files. Python is what every host has; ar comes out
of such a package itself.
"""

import io
import tarfile
from pathlib import Path

HEADER = 60

for package in sorted(Path().glob("*.deb")):
    archive = package.read_bytes()
    begin = len("!<arch>\n")
    while begin < len(archive):
        header = archive[begin : begin + HEADER]
        begin += HEADER
        # ar(5): the name in 16 bytes, the size in decimal from the 48th on; members begin on even bytes.
        size = int(header[48:58])
        if header.startswith(b"data.tar"):
            with tarfile.open(fileobj=io.BytesIO(archive[begin : begin + size])) as files:
                # Links may be absolute; Python 3.14 refuses them unless told so.
                files.extraction_filter = lambda member, _: member
                files.extractall("debian")
        begin += size + size % 2
