"""Check the binaries of a package: glibc version, dependencies, search paths, processor level."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from builder.common.elf import Requirements
from builder.stack.toolchain import numbers

# The libraries of glibc, which every distribution has.
GLIBC = frozenset(
    (
        "ld-linux-x86-64.so.2",
        "libanl.so.1",
        "libc.so.6",
        "libdl.so.2",
        "libm.so.6",
        "libmvec.so.1",
        "libpthread.so.0",
        "libresolv.so.2",
        "librt.so.1",
        "libutil.so.1",
    )
)
VERSION = re.compile(r"GLIBC_(\d+(\.\d+)+)")
# The rank of a version without a number, such as GLIBC_PRIVATE. It is above every supported glibc,
# because each release of glibc may change the symbols with such a version.
UNNUMBERED = (1 << 30,)
# The maximum number of symbols in a message.
SYMBOL_LIMIT = 3

Version = tuple[int, ...]


class GlibcNeed(NamedTuple):
    """A version of glibc that a file requires, and the symbols with this version."""

    version: Version
    name: str
    file: str
    symbols: tuple[str, ...]


def find_newest_glibc(binaries: Mapping[str, Requirements]) -> GlibcNeed | None:
    """Find the newest version of glibc that binaries require; return None if they require none."""
    needs = (
        need for file, required in binaries.items() for need in _list_glibc_needs(file, required)
    )
    return max(needs, default=None)


def make_glibc_specs(binaries: Mapping[str, Requirements]) -> list[str]:
    """Make the match spec on ``__glibc`` for a package; return [] if its binaries require none."""
    need = find_newest_glibc(binaries)
    return [f"__glibc >={'.'.join(map(str, need.version))},<3.0.a0"] if need else []


def find_violations(
    binaries: Mapping[str, Requirements], oldest_glibc: Version, libraries: Collection[str]
) -> Iterator[str]:
    """Describe each forbidden requirement of a package's binaries.

    Args:
        binaries: the requirements of a package's binaries, by path in the prefix.
        oldest_glibc: the oldest glibc that the package must run on.
        libraries: the file names of the libraries in the package and in its dependencies.
    """
    for file, required in binaries.items():
        for need in _list_glibc_needs(file, required):
            if need.version > oldest_glibc:
                ellipsis = ["..."] if need.symbols[SYMBOL_LIMIT:] else []
                symbols = ", ".join([*need.symbols[:SYMBOL_LIMIT], *ellipsis])
                oldest = ".".join(map(str, oldest_glibc))
                yield f"{file} needs {need.name} ({symbols}); packages must run on glibc {oldest}"
        for library in required.libraries:
            if library not in GLIBC and library not in libraries:
                yield f"{file} needs {library}, which no dependency contains"
        for path in required.search_paths:
            if not _is_below_prefix(file, path):
                yield f"{file} searches {path!r} for libraries, which is outside the prefix"
        if required.executable_stack:
            yield f"{file} needs an executable stack"
        if required.text_relocations:
            yield f"{file} has text relocations"
        if required.isa_levels > 1:
            yield f"{file} needs a processor of x86-64-v{required.isa_levels.bit_length()}"


def _list_glibc_needs(file: str, required: Requirements) -> Iterator[GlibcNeed]:
    for name, symbols in required.versions.items():
        if name.startswith("GLIBC_"):
            yield GlibcNeed(_parse_version(name), name, file, symbols)


def _parse_version(name: str) -> Version:
    match = VERSION.fullmatch(name)
    return numbers(match[1]) if match else UNNUMBERED


def _is_below_prefix(file: str, path: str) -> bool:
    """Return whether a file's search path begins with $ORIGIN and does not leave the prefix."""
    origin, _, relative = path.partition("/")
    directory = posixpath.normpath(posixpath.join(posixpath.dirname(file), relative.lstrip("/")))
    return origin in ("$ORIGIN", "${ORIGIN}") and directory.split("/")[0] != ".."
