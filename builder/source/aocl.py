"""AOCL-LibM, AMD's library of mathematics: release archives that users download themselves."""

from __future__ import annotations

import lzma
import tarfile
import zlib
from pathlib import Path

from builder.common.errors import SourceUnavailable
from builder.source import sources

# What a recipe finds it by in build/sources, before the hash.
NAME = "aocl-libm"
# The second is of releases before AOCL 3.0.
LIBRARIES = ("libalm.so", "libamdlibm.so")
HINT = "give AMD's archive of AOCL-LibM for Linux as it was downloaded (aocl-libm-linux-*.tar.gz)"

# ELF, 64 bits, little-endian; and at its offset EM_X86_64 (elf.h: Elf64_Ehdr).
IDENTIFICATION = b"\x7fELF\x02\x01"
MACHINE_OFFSET, MACHINE = 18, b"\x3e\x00"


def keep(archive: Path) -> str:
    """Put a release archive into the cache of sources; its SHA-256.

    Raises:
        SourceUnavailable: it cannot be read to its end, or has no library for x86-64.
        DiskFull: the cache's file system has no room.
    """
    try:
        heads = _libraries(archive)
    except (tarfile.TarError, EOFError, KeyError, OSError, lzma.LZMAError, zlib.error) as error:
        raise SourceUnavailable(
            f"{archive} is truncated or no archive: {error}", f"download it again; {HINT}"
        ) from error
    if not heads:
        raise SourceUnavailable(f"{archive} has neither {' nor '.join(LIBRARIES)}", HINT)
    for name, head in heads.items():
        machine = head[MACHINE_OFFSET : MACHINE_OFFSET + len(MACHINE)]
        if not head.startswith(IDENTIFICATION) or machine != MACHINE:
            raise SourceUnavailable(f"{archive}: {name} is no library for Linux on x86-64", HINT)
    return sources.keep(archive, NAME).sha256


def _libraries(archive: Path) -> dict[str, bytes]:
    """The first bytes of each library in an archive, by its place; reads all of the archive."""
    found = {}
    with tarfile.open(archive) as tar:
        for member in tar:
            if Path(member.name).name in LIBRARIES and (content := tar.extractfile(member)):
                found[member.name] = content.read(64)
        # What follows the last member holds the compressor's checksum.
        assert tar.fileobj is not None
        while tar.fileobj.read(1 << 20):
            pass
    return found
