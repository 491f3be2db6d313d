"""List the shared libraries that this process has mapped; find BLAS and OpenMP libraries.

The source is the kernel's list, ``/proc/self/maps``, because no setting of the dynamic loader can
falsify this list. The list names the file of each mapping, with symlinks resolved.
"""

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from theano_fast import elf

# The file names of BLAS implementations. In an environment, a library with netlib's name, such as
# libblas.so.3, is a symlink to the implementation or forwards calls to it (blas.is_interface).
# Elsewhere, a library with netlib's name can be the slow reference BLAS.
BLAS = {
    "openblas": re.compile(r"lib(scipy_)?openblas.*\.so.*"),
    "mkl": re.compile(r"libmkl_.*\.so.*"),
    "netlib": re.compile(r"lib(ref)?c?blas\.so.*"),
    "atlas": re.compile(r"lib(atlas|[st]atlas|f77blas|pt(c|f77)blas)\.so.*"),
    "blis": re.compile(r"libblis.*\.so.*"),
    "flexiblas": re.compile(r"libflexiblas.*\.so.*"),
}
OPENMP = re.compile(r"lib(gomp|iomp5|omp|omp5)\b.*\.so.*")
# The libraries that glibc installs. An environment uses no other libraries of its host.
GLIBC = re.compile(
    r"(ld|ld-linux.*|lib(c|m|mvec|pthread|dl|rt|util|resolv|nss_(files|dns|compat)))"
    r"(-2\.\d+)?\.so(\.\d+)?"
)
# Implementations that consist of several files.
MANY_FILES = frozenset({"mkl"})


def list_mapped() -> tuple[str, ...]:
    """Return the files whose code this process maps, including the interpreter, sorted."""
    maps = Path("/proc/self/maps").read_text()
    files = parse_maps(maps)
    if os.path.realpath(sys.executable) in files:
        return files
    # On an ARM Mac, Docker runs x86-64 programs with QEMU's user mode. QEMU before 8.1 shows the
    # code of the interpreter, and of most libraries, as not executable. So list the readable
    # mappings, and select ELF files: fonts, locales and arrays are mapped too.
    return tuple(file for file in parse_maps(maps, permission="r") if _is_library(file))


def _is_library(path: str) -> bool:
    """Return whether a file is a library or program for x86-64; False if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return elf.is_x86_64(file.read(20))
    except OSError:
        return False


def parse_maps(maps: str, permission: str = "x") -> tuple[str, ...]:
    """Return the files that the text of ``/proc/<pid>/maps`` maps with a permission, sorted.

    Args:
        maps: the text.
        permission: "r", "w" or "x".
    """
    files = set()
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and permission in fields[1] and fields[5].startswith("/"):
            files.add(fields[5].removesuffix(" (deleted)"))
    return tuple(sorted(files))


def find_blas(files: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return (family, path) of every BLAS among files, sorted.

    The path is the library's file, or the folder of a BLAS that consists of many files.
    """
    instances = set()
    for file in files:
        for family, pattern in BLAS.items():
            if pattern.fullmatch(PurePosixPath(file).name):
                path = str(PurePosixPath(file).parent) if family in MANY_FILES else file
                instances.add((family, path))
    return tuple(sorted(instances))


def find_openmp(files: Iterable[str]) -> tuple[str, ...]:
    """Return the OpenMP run times among files, sorted."""
    return tuple(sorted(file for file in files if OPENMP.fullmatch(PurePosixPath(file).name)))


def find_foreign(files: Iterable[str], folders: Iterable[str]) -> tuple[str, ...]:
    """Return the files that are neither glibc's nor below one of the folders, sorted."""
    prefixes = tuple(str(Path(folder).resolve()) + "/" for folder in folders)
    return tuple(
        sorted(
            file
            for file in files
            if not file.startswith(prefixes) and not GLIBC.fullmatch(PurePosixPath(file).name)
        )
    )


def find_dependents(library: str, files: Iterable[str]) -> tuple[str, ...]:
    """Return the files whose DT_NEEDED names the library, sorted.

    Return () if a program loaded the library with dlopen. Raises elf.ElfError and OSError.
    """
    names = {read_requirements(library).soname, PurePosixPath(library).name}
    return tuple(
        sorted(file for file in files if names.intersection(read_requirements(file).libraries))
    )


def read_requirements(path: str | Path) -> elf.Requirements:
    """Read the requirements of a library or program; raises elf.ElfError and OSError."""
    return elf.read_requirements(Path(path).read_bytes())
