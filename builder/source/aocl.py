"""Check AMD's release archives of AOCL-LibM, which users download, and put them into the cache."""

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
from builder.stack.toolchain import detect_glibc

# The archive's name in build/sources begins with NAME; a part of its SHA-256 follows.
NAME = "aocl-libm"
# The names of the library. Releases before AOCL 3.0 have the second name.
LIBRARIES = ("libalm.so", "libamdlibm.so")
# Patterns of the names of licence files; recipes/amdlibm/build.sh has the same patterns.
LICENCES = ("*licen[cs]e*", "*eula*", "amdlibm.h")
# Pattern of the name of AOCL-LibM's archive. AMD's archive of the whole AOCL contains this archive.
INNER_ARCHIVE = "*libm*.tar*"
HINT = "pass AMD's archive of AOCL-LibM for Linux, as downloaded (aocl-libm-linux-*.tar.gz)"
SLOWER = (
    "AMD's functions are not faster than the functions of the open-source amdlibm:"
    " docs/stacks.md has the measurement"
)

# The first glibc that refuses to load a library with an executable stack into a running process.
GLIBC_WITHOUT_EXECUTABLE_STACKS = (2, 41)


def cache_archive(archive: Path) -> str:
    """Put a release archive into the source cache, and print warnings about its library.

    Returns:
        The SHA-256 of the archive.

    Raises:
        SourceUnavailable: the archive is incomplete; it contains no library or no licence; its
            library is not for x86-64; or this host's glibc does not load the library.
        DiskFull: the file system of the cache is full.
    """
    names, libraries = _read_archive(archive)
    if not libraries:
        inner = [name for name in names if fnmatch.fnmatch(Path(name).name.lower(), INNER_ARCHIVE)]
        hint = f"unpack it, and pass the {Path(inner[0]).name} in it" if inner else HINT
        raise SourceUnavailable(f"{archive} has neither {' nor '.join(LIBRARIES)}", hint)
    if not any(_is_licence(name) for name in names):
        raise SourceUnavailable(
            f"{archive} contains no AMD licence, which must be packaged with the library",
            HINT,
        )
    warnings = [SLOWER]
    for name, image in libraries.items():
        try:
            required = elf.read_requirements(image)
        except elf.ElfError as error:
            raise SourceUnavailable(f"{archive}: {name}: {error}", HINT) from error
        if required.executable_stack and detect_glibc() >= GLIBC_WITHOUT_EXECUTABLE_STACKS:
            raise SourceUnavailable(
                f"{archive}: {name} needs an executable stack, which this host's glibc"
                f" {'.'.join(map(str, detect_glibc()))} refuses",
                "build the stack without --amdlibm-archive, or on a host with an older glibc",
            )
        if required.executable_stack:
            warnings.append(
                f"{name} needs an executable stack: loading it makes the stacks of all threads"
                " executable, and glibc 2.41 and newer refuse to load it"
            )
        if required.text_relocations:
            warnings.append(
                f"{name} has text relocations: the loader makes its code writable. Hardened kernels"
                " refuse this, and processes do not share the code"
            )
    for warning in warnings:
        progress.say(f"{archive.name}: {warning}")
    return sources.cache_file(archive, NAME).sha256


def _is_licence(name: str) -> bool:
    return any(fnmatch.fnmatch(Path(name).name.lower(), pattern) for pattern in LICENCES)


def _read_archive(archive: Path) -> tuple[list[str], dict[str, bytes]]:
    """Read a whole archive.

    Returns:
        The names of its files, and the content of each of its LIBRARIES by path.

    Raises:
        SourceUnavailable: the archive is empty, truncated or another kind of file.
    """
    if archive.stat().st_size == 0:
        raise SourceUnavailable(f"{archive} is empty", f"download it again; {HINT}")
    if zipfile.is_zipfile(archive):
        raise SourceUnavailable(
            f"{archive} is a zip archive, like AMD's archives for Windows", HINT
        )
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
            # Read to the end of the file, which verifies the compressor's checksum after the last
            # member.
            assert tar.fileobj is not None
            while tar.fileobj.read(1 << 20):
                pass
    except tarfile.ReadError as error:
        # Do not print the error's own message: it has one line for each format that tarfile tried.
        reason = "is not a tar archive"
        if names or _is_compressed(archive):
            reason = "is truncated, or not a tar archive"
        raise SourceUnavailable(f"{archive} {reason}", f"download it again; {HINT}") from error
    except (tarfile.TarError, EOFError, KeyError, OSError, lzma.LZMAError, zlib.error) as error:
        raise SourceUnavailable(
            f"{archive} is truncated or cannot be read: {error}", f"download it again; {HINT}"
        ) from error
    return names, libraries


def _is_compressed(archive: Path) -> bool:
    with archive.open("rb") as file:
        return file.read(6).startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00"))
