"""OpenCL on the CPU: what processes of an environment take to compute with the host's PoCL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from builder.common import processes
from builder.common.errors import CommandFailed, HostToolMissing

# libgpuarray opens them by names that only Debian's packages for developers have.
LIBRARIES = {"libOpenCL.so": "libOpenCL.so.1", "libclblast.so": "libclblast.so.1"}
# They need that of the host's compiler, which may be newer than the environment's.
RUNTIME = "libstdc++.so.6"
HINT = "as root: apt-get install pocl-opencl-icd ocl-icd-libopencl1 libclblast1"
# PoCL, where the host has no other OpenCL.
DEVICE = "opencl0:0"
# All that Theano asks of them: a context, memory, BLAS.
PROBE = f"""
import pygpu.blas
context = pygpu.init("{DEVICE}")
matrix = pygpu.zeros((2, 2), dtype="float32", context=context)
pygpu.blas.gemm(1, matrix, matrix, 0)
"""


def environ(directory: Path) -> dict[str, str]:
    """Environment variables for processes; names of the libraries are made in ``directory``.

    Raises:
        HostToolMissing: the host has not got a library.
    """
    found = libraries(processes.run(["/sbin/ldconfig", "-p"]).output)
    if missing := sorted({*LIBRARIES.values(), RUNTIME} - set(found)):
        raise HostToolMissing(f"the host has no {', '.join(missing)}", HINT)
    names = directory / "lib"
    names.mkdir(parents=True, exist_ok=True)
    for name, library in LIBRARIES.items():
        (names / name).unlink(missing_ok=True)
        (names / name).symlink_to(found[library])
    return {
        "LD_LIBRARY_PATH": str(names),
        # The interpreter's own run path comes before LD_LIBRARY_PATH.
        "LD_PRELOAD": found[RUNTIME],
        "POCL_CACHE_DIR": str(directory / "kernels"),
        # Files run side by side, each on one CPU.
        "POCL_MAX_PTHREAD_COUNT": "1",
        # Read by pygpu's own tests; Theano has a flag for it.
        "GPUARRAY_TEST_DEVICE": DEVICE,
    }


def probe(python: Path, variables: Mapping[str, str]) -> None:
    """Multiply matrices on the device.

    Raises:
        HostToolMissing: that failed, twice: PoCL 3.1 crashes now and then in a process that
            finds no kernels of earlier ones.
    """
    command = [str(python), "-c", PROBE]
    if processes.run(command, env=variables, check=False).status == 0:
        return
    try:
        processes.run(command, env=variables)
    except CommandFailed as error:
        raise HostToolMissing(f"OpenCL does not work: {error}", HINT) from error


def libraries(listing: str) -> dict[str, str]:
    """The files of libraries by their sonames, as ``ldconfig -p`` lists them."""
    found: dict[str, str] = {}
    for line in listing.splitlines():
        name, arrow, file = line.partition(" => ")
        if arrow and "x86-64" in name:
            found[name.split()[0]] = file
    return found
