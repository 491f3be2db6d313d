"""Prepare processes of an environment to compute with the host's PoCL: OpenCL on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from builder.common import processes
from builder.common.errors import CommandFailed, HostToolMissing

# libgpuarray opens these libraries by names that only Debian's development packages have.
LIBRARIES = {"libOpenCL.so": "libOpenCL.so.1", "libclblast.so": "libclblast.so.1"}
# These libraries need the host's libstdc++, which may be newer than the environment's.
RUNTIME = "libstdc++.so.6"
HINT = "as root: apt-get install pocl-opencl-icd ocl-icd-libopencl1 libclblast1"
# PoCL, if the host has no other OpenCL.
DEVICE = "opencl0:0"
# Uses the features that Theano needs: a context, memory, BLAS.
PROBE = f"""
import pygpu.blas
context = pygpu.init("{DEVICE}")
matrix = pygpu.zeros((2, 2), dtype="float32", context=context)
pygpu.blas.gemm(1, matrix, matrix, 0)
"""


def make_environ(directory: Path) -> dict[str, str]:
    """Return environment variables for processes; link the libraries in ``directory``.

    Raises:
        HostToolMissing: the host lacks a library.
    """
    host_libraries = parse_libraries(processes.run(["/sbin/ldconfig", "-p"]).output)
    if missing := sorted({*LIBRARIES.values(), RUNTIME} - set(host_libraries)):
        raise HostToolMissing(f"the host has no {', '.join(missing)}", HINT)
    names = directory / "lib"
    names.mkdir(parents=True, exist_ok=True)
    for name, library in LIBRARIES.items():
        (names / name).unlink(missing_ok=True)
        (names / name).symlink_to(host_libraries[library])
    return {
        "LD_LIBRARY_PATH": str(names),
        # The interpreter's own run path comes before LD_LIBRARY_PATH.
        "LD_PRELOAD": host_libraries[RUNTIME],
        "POCL_CACHE_DIR": str(directory / "kernels"),
        # Several test files run at once, each on one CPU.
        "POCL_MAX_PTHREAD_COUNT": "1",
        # pygpu's own tests read this variable; Theano has a flag instead.
        "GPUARRAY_TEST_DEVICE": DEVICE,
    }


def check_device(python: Path, variables: Mapping[str, str]) -> None:
    """Multiply matrices on the device.

    Raises:
        HostToolMissing: the product failed twice. The first failure does not count, because PoCL
            3.1 crashes occasionally in a process with an empty kernel cache.
    """
    command = [str(python), "-c", PROBE]
    if processes.run(command, env=variables, check=False).status == 0:
        return
    try:
        processes.run(command, env=variables)
    except CommandFailed as error:
        raise HostToolMissing(f"OpenCL does not work: {error}", HINT) from error


def parse_libraries(listing: str) -> dict[str, str]:
    """Parse the output of ``ldconfig -p``; return the files of libraries by soname."""
    files: dict[str, str] = {}
    for line in listing.splitlines():
        name, arrow, file = line.partition(" => ")
        if arrow and "x86-64" in name:
            files[name.split()[0]] = file
    return files
