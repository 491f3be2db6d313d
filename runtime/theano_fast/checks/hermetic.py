"""No library of the host is loaded but glibc's own.

A library that the host lends is one that the next machine has in another version, or not at all.
"""

import ctypes
import importlib.machinery
import sys
import sysconfig
from importlib import metadata
from pathlib import Path, PurePosixPath

import numpy as np
import theano
import theano.tensor as T

from theano_fast import elf, libraries
from theano_fast.checks.result import Options, Result


def run(options: Options) -> Result:
    """Load every extension module and modules of Theano's making; name what is foreign."""
    modules = extension_modules()
    unloadable = [error for error in map(load, modules) if error]
    run_theano()
    mapped = libraries.mapped()
    foreign = libraries.foreign(mapped, (sys.prefix, theano.config.compiledir))
    failures = [*unloadable, *(describe(file, mapped) for file in foreign)]
    system = [file for file in mapped if libraries.GLIBC.fullmatch(PurePosixPath(file).name)]
    return Result(
        summary=f"{len(mapped)} libraries, of the host only {len(system)} of glibc's",
        failures=tuple(failures),
        measurements={
            "extension_modules": len(modules),
            "foreign": list(foreign),
            "glibc": system,
        },
    )


def extension_modules() -> tuple[Path, ...]:
    """Return the compiled modules of the standard library and of the packages, sorted.

    Test modules are left out: nothing imports them at run time; and what pip installed, of which
    some cannot be loaded without their interpreter's lock, or lean on the host; and mpi4py, whose
    MPI is the host's.
    """
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    others = {
        Path(str(package.locate_file(file)))
        for package in metadata.distributions()
        if (package.read_text("INSTALLER") or "conda").strip() != "conda"
        for file in package.files or ()
    }
    roots = {Path(sysconfig.get_path(name)) for name in ("platstdlib", "platlib")}
    found = {
        path
        for root in roots
        for path in root.rglob("*.so")
        if path.name.endswith(suffixes) and "test" not in path.name and "mpi4py" not in path.parts
    }
    return tuple(sorted(found - others))


def load(module: Path) -> str:
    """Load a module's file with all that it needs, without running it; return what is wrong."""
    try:
        ctypes.CDLL(str(module))
    except OSError as error:
        return f"{module} cannot be loaded: {error}"
    return ""


def run_theano() -> None:
    """Run compiled modules: BLAS, a parallel Elemwise, a scan."""
    a, x = T.dmatrix("a"), T.dvector("x")
    powers, _ = theano.scan(lambda value: T.dot(a, value), outputs_info=[x], n_steps=2)
    theano.function([a, x], [powers, T.dot(a, a), T.exp(a)])(np.eye(2), np.ones(2))


def describe(file: str, mapped: tuple[str, ...]) -> str:
    """Say which foreign library is loaded and who needs it."""
    try:
        needing = [PurePosixPath(user).name for user in libraries.needing(file, mapped)]
    except elf.ElfError:
        needing = []
    users = ", ".join(needing[:3]) or "a module that opened it"
    more = f" and {len(needing) - 3} more" if needing[3:] else ""
    return f"{file} is the host's, needed by {users}{more}"
