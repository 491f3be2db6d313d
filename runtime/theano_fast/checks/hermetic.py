"""Check that no library of the host except glibc is loaded.

Another machine may lack the host's libraries, or have other versions of them.
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
    """Load extension modules and modules that Theano compiles; report the host's libraries."""
    modules = list_extension_modules()
    unloadable = list(filter(None, map(load_library, modules)))
    run_theano()
    mapped = libraries.list_mapped()
    own = (sys.base_prefix, sys.prefix, theano.config.compiledir)
    foreign = libraries.find_foreign(mapped, own)
    failures = [*unloadable, *(describe_library(file, mapped) for file in foreign)]
    system = [file for file in mapped if libraries.GLIBC.fullmatch(PurePosixPath(file).name)]
    return Result(
        summary=f"{len(mapped)} libraries; {len(system)} of them are the host's glibc",
        failures=tuple(failures),
        measurements={
            "extension_modules": len(modules),
            "foreign": list(foreign),
            "glibc": system,
        },
    )


def list_extension_modules() -> tuple[Path, ...]:
    """Return the compiled modules of the standard library and of the stack's packages, sorted.

    Omit these modules:

    - test modules, because programs do not import them;
    - modules that pip installed, because some need the host's libraries, and ctypes cannot load
      others;
    - mpi4py, because its MPI is the host's.
    """
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    pip_files = {
        Path(str(package.locate_file(file)))
        for package in metadata.distributions()
        if (package.read_text("INSTALLER") or "conda").strip() != "conda"
        for file in package.files or ()
    }
    # In a virtual environment, list the modules of the environment whose Python created it.
    base = dict.fromkeys(("base", "platbase"), sys.base_prefix)
    roots = {Path(sysconfig.get_path(name, vars=base)) for name in ("platstdlib", "platlib")}
    modules = {
        path
        for root in roots
        for path in root.rglob("*.so")
        if path.name.endswith(suffixes) and "test" not in path.name and "mpi4py" not in path.parts
    }
    return tuple(sorted(modules - pip_files))


def load_library(module: Path) -> str:
    """Load a module's file and its libraries without an import; return an error or ""."""
    try:
        ctypes.CDLL(str(module))
    except OSError as error:
        return f"{module} cannot be loaded: {error}"
    return ""


def run_theano() -> None:
    """Run modules that Theano compiles: BLAS ops, an Elemwise that uses OpenMP, and a scan."""
    a, x = T.dmatrix("a"), T.dvector("x")
    powers, _ = theano.scan(lambda value: T.dot(a, value), outputs_info=[x], n_steps=2)
    theano.function([a, x], [powers, T.dot(a, a), T.exp(a)])(np.eye(2), np.ones(2))


def describe_library(file: str, mapped: tuple[str, ...]) -> str:
    """Describe a library of the host and the files that need it."""
    try:
        dependents = [PurePosixPath(name).name for name in libraries.find_dependents(file, mapped)]
    except elf.ElfError:
        dependents = []
    names = ", ".join(dependents[:3]) or "a module that opened it by name"
    more = f" and {len(dependents) - 3} more" if dependents[3:] else ""
    return f"{file} is the host's, needed by {names}{more}"
