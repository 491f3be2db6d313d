"""AOCL-LibM, AMD's library of mathematics: release archives that users download themselves."""

from __future__ import annotations

import fnmatch
import lzma
import tarfile
import zipfile
import zlib
from pathlib import Path

from builder.common import elf, progress
from builder.common.errors import SourceUnavailable
from builder.source import sources
from builder.stack.toolchain import glibc

# What a recipe finds it by in build/sources, before the hash.
NAME = "aocl-libm"
# The second is of releases before AOCL 3.0.
LIBRARIES = ("libalm.so", "libamdlibm.so")
# What recipes/amdlibm/build.sh takes the licence from.
LICENCES = ("*licen[cs]e*", "*eula*", "amdlibm.h")
# In the archive of all of AOCL.
INNER = "*libm*.tar*"
HINT = "give AMD's archive of AOCL-LibM for Linux as it was downloaded (aocl-libm-linux-*.tar.gz)"
SLOWER = (
    "AMD's functions are slower than those of the open amdlibm, or as fast:"
    " docs/stacks.md has a table"
)

# The first glibc that loads no library which demands an executable stack into a running process.
REFUSING = (2, 41)


def keep(archive: Path) -> str:
    """Put a release archive into the cache of sources; its SHA-256.

    Says what loading its library does to a process.

    Raises:
        SourceUnavailable: it cannot be read to its end, lacks a library for x86-64 or a licence,
            or the library is one that this host's glibc refuses.
        DiskFull: the cache's file system has no room.
    """
    names, libraries = _read(archive)
    if not libraries:
        inner = [name for name in names if fnmatch.fnmatch(Path(name).name.lower(), INNER)]
        hint = f"unpack it, and give the {Path(inner[0]).name} that is in it" if inner else HINT
        raise SourceUnavailable(f"{archive} has neither {' nor '.join(LIBRARIES)}", hint)
    if not any(_is_licence(name) for name in names):
        raise SourceUnavailable(
            f"{archive} has no licence of AMD's, nor amdlibm.h with one, to be packaged with it",
            HINT,
        )
    warnings = [SLOWER]
    for name, image in libraries.items():
        if not elf.is_x86_64(image):
            raise SourceUnavailable(f"{archive}: {name} is no library for Linux on x86-64", HINT)
        try:
            demands = elf.demands(image)
        except elf.CutShort as error:
            raise SourceUnavailable(f"{archive}: {name} is cut short: {error}", HINT) from error
        if demands.executable_stack and glibc() >= REFUSING:
            raise SourceUnavailable(
                f"{archive}: {name} demands an executable stack, and this host's glibc"
                f" {'.'.join(map(str, glibc()))} loads no such library",
                "build the stack without --amdlibm-archive, or on a host with an older glibc",
            )
        if demands.executable_stack:
            warnings.append(
                f"{name} demands an executable stack: loading it makes the stacks of the whole"
                " process executable, and glibc from 2.41 on refuses it"
            )
        if demands.text_relocations:
            warnings.append(
                f"{name} has text relocations: its code is made writable while it is loaded,"
                " which hardened kernels refuse, and no two processes share it"
            )
    for warning in warnings:
        progress.say(f"{archive.name}: {warning}")
    return sources.keep(archive, NAME).sha256


def _is_licence(name: str) -> bool:
    return any(fnmatch.fnmatch(Path(name).name.lower(), pattern) for pattern in LICENCES)


def _read(archive: Path) -> tuple[list[str], dict[str, bytes]]:
    """The names of an archive's files, and each library by its place; reads all of the archive."""
    if archive.stat().st_size == 0:
        raise SourceUnavailable(f"{archive} is empty", f"download it again; {HINT}")
    if zipfile.is_zipfile(archive):
        raise SourceUnavailable(f"{archive} is a zip archive, as AMD's for Windows are", HINT)
    names, libraries = [], {}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                content = None if member.isdir() else tar.extractfile(member)
                if content is None:
                    continue
                names.append(member.name)
                if Path(member.name).name in LIBRARIES:
                    libraries[member.name] = content.read()
            # What follows the last member holds the compressor's checksum.
            assert tar.fileobj is not None
            while tar.fileobj.read(1 << 20):
                pass
    except tarfile.ReadError as error:
        # Its message is every format's reason, a line each.
        reason = (
            "is truncated, or no tar archive"
            if names or _compressed(archive)
            else ("is no tar archive")
        )
        raise SourceUnavailable(f"{archive} {reason}", f"download it again; {HINT}") from error
    except (tarfile.TarError, EOFError, KeyError, OSError, lzma.LZMAError, zlib.error) as error:
        raise SourceUnavailable(
            f"{archive} is truncated, or cannot be read: {error}", f"download it again; {HINT}"
        ) from error
    return names, libraries


def _compressed(archive: Path) -> bool:
    with archive.open("rb") as file:
        return file.read(6).startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00"))
