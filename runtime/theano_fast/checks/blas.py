"""The BLAS ops are C, bound to the stack's library, the only BLAS and OpenMP in the process."""

import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import scipy.linalg
import theano
import theano.tensor as T

from theano_fast import blas, elf, libraries, thunks
from theano_fast.checks.result import Options, Result

EMPTY = (
    "blas.ldflags is empty: Theano falls back on its own C over numpy's API for gemm and on Python"
    " for the rest; an environment of this stack sets it in {prefix}/etc/theanorc"
)


def run(options: Options) -> Result:
    """Compile and run the kernels and an OpenMP Elemwise, then look at what was loaded."""
    family = options.stack.axes["blas"]
    ldflags = theano.config.blas.ldflags
    failures = [] if ldflags else [EMPTY.format(prefix=sys.prefix)]
    for name, function, arguments in kernels():
        function(*arguments)
        failures += misbound(name, thunks.read(function), family)
    scipy.linalg.lu_factor(np.eye(3))
    failures += run_openmp()

    mapped = libraries.mapped()
    instances, runtimes = blas.loaded(), libraries.openmp_runtimes(mapped)
    failures += wrong_blas(instances, family) + wrong_openmp(runtimes)
    versions = [] if failures else [blas.version(instance) for instance in instances]
    return Result(
        summary="; ".join(versions),
        failures=tuple(failures),
        measurements={
            "blas": [f"{instance.family}: {instance.place}" for instance in instances],
            "ldflags": ldflags,
            "openmp": list(runtimes),
            "versions": versions,
        },
    )


def kernels() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Yield (op, compiled function, arguments) whose graph must hold the BLAS op."""
    a, b, c = T.dmatrices("a", "b", "c")
    x, y = T.dvectors("x", "y")
    square, line = np.eye(4), np.ones(4)
    yield "Gemm", theano.function([a, b, c], 0.4 * c + 0.8 * T.dot(a, b)), (square,) * 3
    yield "Dot22", theano.function([a, b], T.dot(a, b)), (square, square)
    yield "Gemv", theano.function([a, x, y], 0.4 * y + 0.8 * T.dot(a, x)), (square, line, line)
    yield "Ger", theano.function([a, x, y], a + 0.8 * T.outer(x, y)), (square, line, line)


def misbound(name: str, made: tuple[thunks.Thunk, ...], family: str) -> list[str]:
    """Return what is wrong with the binding of a BLAS op among a function's thunks.

    An op's C version has a "C" before its name where Theano has two classes (CGemv, CGer).
    """
    found = [thunk for thunk in made if thunk.kind in (name, f"C{name}")]
    if not found:
        return [f"{name}: the compiled graph has only {sorted({t.kind for t in made})}"]
    failures = []
    for thunk in found:
        if thunk.implementation != "C":
            failures.append(f"{name} runs in Python")
        elif not linked(thunk.module, family):
            failures.append(f"{name}'s compiled module is not linked with {family}")
    return failures


def linked(module: str, family: str) -> bool:
    """Return whether a module needs a BLAS, itself or through the interface's libblas.so.3."""
    needed = elf.read(module).needed
    interface = Path(sys.prefix, "lib", "libblas.so.3")
    if interface.name in needed:
        needed += elf.read(interface).needed
    return any(libraries.BLAS[family].fullmatch(name) for name in needed)


def run_openmp() -> list[str]:
    """Run an Elemwise whose loop is parallel; return what is wrong."""
    x = T.dvector("x")
    function = theano.function([x], T.exp(x))
    function(np.zeros(100_000))
    if not any(getattr(node.op, "openmp", False) for node in function.fn.nodes):
        return ["Theano compiled the Elemwise without OpenMP: g++ -fopenmp does not work"]
    return []


def wrong_blas(instances: tuple[blas.Blas, ...], family: str) -> list[str]:
    """Return what is wrong with the BLAS libraries in the process."""
    if [instance.family for instance in instances] != [family]:
        found = ", ".join(f"{i.family} ({i.place})" for i in instances) or "none"
        return [f"the process must have loaded one BLAS, {family}; it has {found}"]
    if not inside(instances[0].place):
        return [f"the BLAS is the host's, not the environment's: {instances[0].place}"]
    try:
        blas.version(instances[0])
    except blas.BlasError as error:
        return [str(error)]
    return []


def wrong_openmp(runtimes: tuple[str, ...]) -> list[str]:
    """Return what is wrong with the OpenMP run times in the process."""
    if len(runtimes) != 1:
        names = ", ".join(runtimes) or "none"
        return [f"the process must have loaded one OpenMP run time; it has {names}"]
    if not inside(runtimes[0]):
        needing = libraries.needing(runtimes[0], libraries.mapped())
        users = ", ".join(PurePosixPath(file).name for file in needing)
        return [f"the OpenMP run time is the host's: {runtimes[0]}, needed by {users}"]
    return []


def inside(file: str) -> bool:
    """Tell whether a file, links resolved, belongs to the environment."""
    return Path(file).resolve().is_relative_to(Path(sys.prefix).resolve())
