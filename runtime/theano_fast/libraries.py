"""The shared libraries mapped into a process, and which of them are a BLAS or an OpenMP run time.

The kernel's list, ``/proc/self/maps``, is the only one that no loader setting can deceive: it
names the file behind every mapping, with symbolic links resolved.
"""

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from theano_fast import elf

# The file names by which a BLAS gives itself away. The netlib interface's libraries, libblas.so.3
# and its like, are links to the implementation in an environment of ours; a real file of that
# name is the slow reference BLAS.
BLAS = {
    "openblas": re.compile(r"lib(scipy_)?openblas.*\.so.*"),
    "mkl": re.compile(r"libmkl_.*\.so.*"),
    "netlib": re.compile(r"lib(ref)?c?blas\.so.*"),
    "atlas": re.compile(r"lib(atlas|[st]atlas|f77blas|pt(c|f77)blas)\.so.*"),
    "blis": re.compile(r"libblis.*\.so.*"),
    "flexiblas": re.compile(r"libflexiblas.*\.so.*"),
}
OPENMP = re.compile(r"lib(gomp|iomp5|omp|omp5)\b.*\.so.*")
# What glibc itself installs: the only libraries an environment takes from its host.
GLIBC = re.compile(
    r"(ld|ld-linux.*|lib(c|m|mvec|pthread|dl|rt|util|resolv|nss_(files|dns|compat)))"
    r"(-2\.\d+)?\.so(\.\d+)?"
)
# One MKL is many files.
MANY_FILES = frozenset({"mkl"})


def mapped() -> tuple[str, ...]:
    """Return the files this process runs code from, the interpreter's own included, sorted."""
    return parse(Path("/proc/self/maps").read_text())


def parse(maps: str) -> tuple[str, ...]:
    """Return the files with an executable mapping in the text of a ``/proc/<pid>/maps``."""
    files = set()
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and "x" in fields[1] and fields[5].startswith("/"):
            files.add(fields[5].removesuffix(" (deleted)"))
    return tuple(sorted(files))


def blas_instances(files: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return (family, place) of every BLAS among files, sorted.

    The place is the library's file; its folder for a BLAS made of many files.
    """
    found = set()
    for file in files:
        for family, pattern in BLAS.items():
            if pattern.fullmatch(PurePosixPath(file).name):
                place = str(PurePosixPath(file).parent) if family in MANY_FILES else file
                found.add((family, place))
    return tuple(sorted(found))


def openmp_runtimes(files: Iterable[str]) -> tuple[str, ...]:
    """Return the OpenMP run times among files, sorted."""
    return tuple(sorted(file for file in files if OPENMP.fullmatch(PurePosixPath(file).name)))


def foreign(files: Iterable[str], folders: Iterable[str]) -> tuple[str, ...]:
    """Return the files that are neither glibc's nor below one of the folders, sorted."""
    homes = tuple(str(Path(folder).resolve()) + "/" for folder in folders)
    return tuple(
        sorted(
            file
            for file in files
            if not file.startswith(homes) and not GLIBC.fullmatch(PurePosixPath(file).name)
        )
    )


def needing(library: str, files: Iterable[str]) -> tuple[str, ...]:
    """Return those of files whose DT_NEEDED names the library, sorted.

    Empty for one that was opened by name at run time. Raises elf.ElfError and OSError.
    """
    names = {elf.read(library).soname, PurePosixPath(library).name}
    return tuple(sorted(file for file in files if names.intersection(elf.read(file).needed)))
