"""Early compilation of kernels: NVRTC compiles them in threads while g++ compiles the modules.

A module contains the sources of its kernels. The module's initialization requests the kernels from
libgpuarray one after another. libgpuarray calls NVRTC through lib/gpuarray/libnvrtc.so, which
compiles the sources ahead (recipes/libgpuarray/nvrtc.c). The kernels have the same sources as
without early compilation. For ops whose kernels libgpuarray writes, elemwise_kernels.py adds the
sources to the module.

The threads compile to machine code if all devices have the architecture for which libgpuarray
compiles. Otherwise they compile to PTX, which NVIDIA's driver translates when libgpuarray requests
the kernel.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any

from theano.gof import early_compilation
from theano.gof.compilation import ModuleParts, count_jobs
from theano.gpuarray import driver
from theano.gpuarray.type import get_context, list_contexts

# The definition of a kernel's source in a module (GpuKernelBase._generate_kernel_code, and
# elemwise_kernels.declare_kernels).
SOURCE = re.compile(r'static const char \*\w+_unsigned = "((?:[^"\\]|\\.)*+)";', re.DOTALL)
# The source of a kernel that nvrtc.c does not compile: it only passes the header.
HEADER_REQUEST = "#error no kernel: this source passes the header to the threads"
# Maps the character after a backslash in a C string to the character of the pair.
ESCAPES = {"n": "\n", '"': '"', "\\": "\\", "t": "\t"}
# The hashes of the sources that threads compile. libgpuarray keeps the kernels in memory for later
# functions. If two sources have equal hashes, libgpuarray compiles the second source itself.
requested: set[int] = set()


@functools.cache
def load_library() -> ctypes.CDLL | None:
    """Return libnvrtc.so of libgpuarray, or None if it cannot compile kernels ahead."""
    try:
        library = ctypes.CDLL(driver.NVRTC)
        atexit.register(library.finish_kernels)
        library.compile_kernels_in_threads.restype = ctypes.c_int
    except (OSError, AttributeError):
        return None
    return library


def find_sources(module: ModuleParts) -> Iterator[bytes]:
    """Yield the sources of a module's kernels, as libgpuarray receives them."""
    for piece in module.support_code:
        for match in SOURCE.finditer(piece.replace(module.hash_placeholder, module.code_hash)):
            if set(re.findall(r"\\(.)", match[1], re.DOTALL)) <= ESCAPES.keys():
                yield re.sub(r"\\(.)", lambda pair: ESCAPES[pair[1]], match[1]).encode()


def compile_kernels_ahead(modules: Iterable[ModuleParts]) -> None:
    """Start to compile the kernels of modules that g++ must compile.

    Do nothing if several devices are in use, because the device of a kernel is still unknown.
    """
    contexts = [get_context(name) for name in list_contexts()]
    if len(contexts) != 1 or contexts[0].kind != b"cuda":
        return
    unique_sources = dict.fromkeys(itertools.chain.from_iterable(map(find_sources, modules)))
    sources = [source for source in unique_sources if hash(source) not in requested]
    library = load_library() if sources else None
    requested.update(map(hash, sources))
    if library and library.compile_kernels_in_threads(
        len(sources),
        (ctypes.c_char_p * len(sources))(*sources),
        contexts[0].bin_id,
        choose_target(contexts[0].bin_id),
        count_jobs(),
    ):
        pass_header(contexts[0])


def choose_target(architecture: bytes) -> bytes:
    """Return the architecture for which the threads compile.

    Args:
        architecture: libgpuarray's architecture, such as "compute_90".
    """
    number = architecture.removeprefix(b"compute_")
    return b"sm_" + number if driver.query_capabilities() == {number.decode()} else architecture


def pass_header(context: Any) -> None:
    """Let libgpuarray pass the kernels' header to NVRTC; the threads wait for the header.

    Otherwise, if the disk cache contains the kernels of libgpuarray's BLAS, libgpuarray first calls
    NVRTC when g++ has compiled the first module.
    """
    # pygpu is not installed in the stacks for CPUs.
    from pygpu.gpuarray import GpuArrayException, GpuKernel  # noqa: PLC0415

    with contextlib.suppress(GpuArrayException):
        GpuKernel(HEADER_REQUEST, "none", [], context=context)


early_compilation.listeners.append(compile_kernels_ahead)
