"""Prepare the processes of an environment to compute with the host's PoCL: OpenCL on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from builder.common import processes
from builder.common.errors import CommandFailed, HostToolMissing

# Maps the file names that libgpuarray opens to the host's libraries. Only Debian's development
# packages contain files with these names.
LIBRARIES = {"libOpenCL.so": "libOpenCL.so.1", "libclblast.so": "libclblast.so.1"}
# The LIBRARIES need the host's libstdc++, which may be newer than the environment's.
RUNTIME = "libstdc++.so.6"
HINT = "as root: apt-get install pocl-opencl-icd ocl-icd-libopencl1 libclblast1"
# The first OpenCL device: PoCL's device, if the host has no other implementation of OpenCL.
DEVICE = "opencl0:0"
# A program that uses the features that Theano needs: a context, memory and BLAS.
PROBE = f"""
import pygpu.blas
context = pygpu.init("{DEVICE}")
matrix = pygpu.zeros((2, 2), dtype="float32", context=context)
pygpu.blas.gemm(1, matrix, matrix, 0)
"""


def make_environ(directory: Path) -> dict[str, str]:
    """Return the environment variables with which processes find the host's OpenCL.

    Args:
        directory: a directory for links to the libraries, and for PoCL's kernel cache.

    Raises:
        HostToolMissing: the host lacks a library.
    """
    host_libraries = parse_libraries(processes.run(["/sbin/ldconfig", "-p"]).output)
    if missing := sorted({*LIBRARIES.values(), RUNTIME} - set(host_libraries)):
        raise HostToolMissing(f"the host has no {', '.join(missing)}", HINT)
    links = directory / "lib"
    links.mkdir(parents=True, exist_ok=True)
    for name, library in LIBRARIES.items():
        (links / name).unlink(missing_ok=True)
        (links / name).symlink_to(host_libraries[library])
    return {
        "LD_LIBRARY_PATH": str(links),
        # Preload the host's libstdc++. In LD_LIBRARY_PATH it would come after the interpreter's run
        # path, which contains the environment's libstdc++.
        "LD_PRELOAD": host_libraries[RUNTIME],
        "POCL_CACHE_DIR": str(directory / "kernels"),
        # Compute each kernel on one CPU, because several test files run at once.
        "POCL_MAX_PTHREAD_COUNT": "1",
        # pygpu's own tests read the device from this variable. Theano reads it from THEANO_FLAGS.
        "GPUARRAY_TEST_DEVICE": DEVICE,
    }


def check_device(python: Path, variables: Mapping[str, str]) -> None:
    """Check that a process of the environment can multiply matrices on the device.

    Args:
        python: the interpreter of the environment.
        variables: the environment variables of its process.

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
    """Parse the output of ``ldconfig -p``; return the files of x86-64 libraries by soname."""
    files: dict[str, str] = {}
    for line in listing.splitlines():
        name, arrow, file = line.partition(" => ")
        if arrow and "x86-64" in name:
            files[name.split()[0]] = file
    return files
