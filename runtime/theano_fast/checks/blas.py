"""Check that BLAS ops run in C, by kernels or the stack's BLAS; reject a second BLAS or OpenMP."""

import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import scipy.linalg
import theano
import theano.tensor as T

from theano_fast import blas, libraries, thunks
from theano_fast.checks.result import Options, Result

EMPTY = (
    "blas.ldflags is empty, so gemm runs in C through numpy and other BLAS ops run in Python;"
    " remove the flag from your settings; if {prefix}/etc/theanorc was changed, make a new"
    " environment"
)


def run(options: Options) -> Result:
    """Run the BLAS ops and an Elemwise that uses OpenMP, and check the loaded libraries."""
    family = options.stack.axes["blas"]
    ldflags = theano.config.blas.ldflags
    failures = [] if ldflags else [EMPTY.format(prefix=sys.base_prefix)]
    for name, function, arguments in compile_ops():
        function(*arguments)
        failures += check_binding(name, thunks.read(function), family)
    # Load SciPy's libraries too, because a wheel of SciPy has its own BLAS.
    scipy.linalg.lu_factor(np.eye(3))
    failures += run_openmp()

    mapped = libraries.list_mapped()
    instances, runtimes = blas.list_loaded(), libraries.find_openmp(mapped)
    failures += check_blas(instances, family) + check_openmp(runtimes)
    versions = [] if failures else [blas.read_version(instance) for instance in instances]
    return Result(
        summary="; ".join(versions),
        failures=tuple(failures),
        measurements={
            "blas": [f"{instance.family}: {instance.path}" for instance in instances],
            "ldflags": ldflags,
            "openmp": list(runtimes),
            "versions": versions,
        },
    )


def compile_ops() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Yield (name of a BLAS op, compiled function that must contain it, the call's arguments)."""
    a, b, c = T.dmatrices("a", "b", "c")
    x, y = T.dvectors("x", "y")
    square, line = np.eye(4), np.ones(4)
    yield "Gemm", theano.function([a, b, c], 0.4 * c + 0.8 * T.dot(a, b)), (square,) * 3
    yield "Dot22", theano.function([a, b], T.dot(a, b)), (square, square)
    yield "Gemv", theano.function([a, x, y], 0.4 * y + 0.8 * T.dot(a, x)), (square, line, line)
    yield "Ger", theano.function([a, x, y], a + 0.8 * T.outer(x, y)), (square, line, line)


def check_binding(name: str, nodes: tuple[thunks.Thunk, ...], family: str) -> list[str]:
    """Return a failure if a BLAS op is missing, runs in Python, or calls another BLAS.

    Args:
        name: the op's class; CGemv also counts as Gemv, and CGer also counts as Ger.
        nodes: the thunks of the compiled function.
        family: the stack's BLAS, a key of libraries.BLAS.
    """
    matches = [thunk for thunk in nodes if thunk.kind in (name, f"C{name}")]
    if not matches:
        kinds = sorted({thunk.kind for thunk in nodes})
        return [f"{name} is not in the compiled graph, which has {kinds}"]
    failures = []
    for thunk in matches:
        if thunk.implementation != "C":
            failures.append(f"{name} runs in Python")
        elif not (uses_kernels(thunk.module) or is_linked(thunk.module, family)):
            failures.append(f"{name}'s compiled module is not linked with {family}")
    return failures


def uses_kernels(module: str) -> bool:
    """Return whether a thunk is compiled with the package: it computes with Theano's kernels."""
    return Path(module).name.startswith("thunks_ext.")


def is_linked(module: str, family: str) -> bool:
    """Return whether a compiled module links to a BLAS, directly or through libblas.so.3."""
    needed = libraries.read_requirements(module).libraries
    interface = Path(sys.base_prefix, "lib", "libblas.so.3")
    if interface.name in needed:
        needed += libraries.read_requirements(interface).libraries
    return any(libraries.BLAS[family].fullmatch(name) for name in needed)


def run_openmp() -> list[str]:
    """Run an Elemwise with a parallel loop; return a failure if it was compiled without OpenMP."""
    x = T.dvector("x")
    function = theano.function([x], T.exp(x))
    function(np.zeros(100_000))
    if not any(getattr(node.op, "openmp", False) for node in function.fn.nodes):
        return ["Theano compiled the Elemwise without OpenMP: g++ -fopenmp does not work"]
    return []


def check_blas(instances: tuple[blas.Blas, ...], family: str) -> list[str]:
    """Return a failure unless exactly one BLAS is loaded: the environment's BLAS of ``family``."""
    if [instance.family for instance in instances] != [family]:
        names = ", ".join(f"{i.family} ({i.path})" for i in instances) or "none"
        return [f"the process must load one BLAS, {family}; it loaded {names}"]
    if not is_in_environment(instances[0].path):
        return [f"the BLAS is the host's, not the environment's: {instances[0].path}"]
    try:
        blas.read_version(instances[0])
    except blas.BlasError as error:
        return [str(error)]
    return []


def check_openmp(runtimes: tuple[str, ...]) -> list[str]:
    """Return a failure unless exactly one OpenMP run time is loaded: the environment's."""
    if len(runtimes) != 1:
        names = ", ".join(runtimes) or "none"
        return [f"the process must load one OpenMP run time; it loaded {names}"]
    if not is_in_environment(runtimes[0]):
        dependents = libraries.find_dependents(runtimes[0], libraries.list_mapped())
        names = ", ".join(PurePosixPath(file).name for file in dependents)
        return [f"the OpenMP run time is the host's: {runtimes[0]}, needed by {names}"]
    return []


def is_in_environment(file: str) -> bool:
    """Return whether a file is in the environment after symlinks are resolved."""
    return Path(file).resolve().is_relative_to(Path(sys.base_prefix).resolve())
