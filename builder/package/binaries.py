"""What the binaries in a package ask of the machine, and what they may ask."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from builder.common.elf import Demands
from builder.stack.toolchain import numbers

# Every distribution with glibc has these of it.
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
# Others, as GLIBC_PRIVATE, are of one glibc alone: no floor has them.
NUMBERLESS = (1 << 30,)
# How many symbols a complaint names.
NAMED = 3

Version = tuple[int, ...]


class Need(NamedTuple):
    """A version of glibc that a file asks for, and the symbols that are the reason."""

    version: Version
    name: str
    file: str
    symbols: tuple[str, ...]


def highest(binaries: Mapping[str, Demands]) -> Need | None:
    """What asks for the newest glibc, if anything asks for a version."""
    needs = (need for file, demands in binaries.items() for need in _needs(file, demands))
    return max(needs, default=None)


def requirement(binaries: Mapping[str, Demands]) -> list[str]:
    """What a package with these binaries depends on for their sake: no match spec, or one."""
    need = highest(binaries)
    return [f"__glibc >={'.'.join(map(str, need.version))},<3.0.a0"] if need else []


def complaints(
    binaries: Mapping[str, Demands], floor: Version, libraries: Collection[str]
) -> Iterator[str]:
    """Each thing that a binary asks for and may not.

    Args:
        binaries: what the binaries of a package demand, by their places in the prefix.
        floor: the oldest glibc that they are to run with.
        libraries: the names of those that are there: its own, and its dependencies'.
    """
    for file, demands in binaries.items():
        for need in _needs(file, demands):
            if need.version > floor:
                symbols = [*need.symbols[:NAMED], *(["..."] if need.symbols[NAMED:] else [])]
                oldest = ".".join(map(str, floor))
                yield f"{file} needs {need.name} ({', '.join(symbols)}), the floor is {oldest}"
        for library in demands.libraries:
            if library not in GLIBC and library not in libraries:
                yield f"{file} needs {library}, which no dependency has"
        for path in demands.search_paths:
            if not _inside(file, path):
                yield f"{file} looks for libraries in {path!r}, which is not below the prefix"
        if demands.executable_stack:
            yield f"{file} demands an executable stack"
        if demands.text_relocations:
            yield f"{file} has text relocations"
        if demands.levels > 1:
            yield f"{file} needs a processor of x86-64-v{demands.levels.bit_length()}"


def _needs(file: str, demands: Demands) -> Iterator[Need]:
    for name, symbols in demands.versions.items():
        if name.startswith("GLIBC_"):
            yield Need(_version(name), name, file, symbols)


def _version(name: str) -> Version:
    found = VERSION.fullmatch(name)
    return numbers(found[1]) if found else NUMBERLESS


def _inside(file: str, path: str) -> bool:
    """Whether a search path of a file is relative to it, and below the prefix."""
    origin, _, rest = path.partition("/")
    place = posixpath.normpath(posixpath.join(posixpath.dirname(file), rest.lstrip("/")))
    return origin in ("$ORIGIN", "${ORIGIN}") and place.split("/")[0] != ".."
