"""Early compilation of kernels: NVRTC compiles them in threads while g++ compiles the modules.

A module contains the sources of its kernels and requests them from libgpuarray one after another
when it is initialized. libgpuarray calls NVRTC through lib/gpuarray/libnvrtc.so, which compiles the
sources ahead (recipes/libgpuarray/nvrtc.c). The kernels are the same as without this module.

GpuElemwise's kernels are not compiled early, because libgpuarray writes their sources.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import re
from collections.abc import Iterable, Iterator

from theano import config
from theano.gof import early_compilation
from theano.gof.compilation import ModuleParts
from theano.gpuarray import driver
from theano.gpuarray.type import get_context, list_contexts

# The definition of a kernel's source in a module (GpuKernelBase._generate_kernel_code).
SOURCE = re.compile(r'static const char \*\w+_unsigned = "((?:[^"\\]|\\.)*+)";', re.DOTALL)
# Maps the character after a backslash in a C string to the character of the pair.
ESCAPES = {"n": "\n", '"': '"', "\\": "\\", "t": "\t"}


@functools.cache
def load_library() -> ctypes.CDLL | None:
    """Return libnvrtc.so of libgpuarray, or None if it cannot compile kernels ahead."""
    try:
        library = ctypes.CDLL(driver.NVRTC)
        atexit.register(library.finish_kernels)
    except (OSError, AttributeError):
        return None
    return library


def find_sources(module: ModuleParts) -> Iterator[bytes]:
    """Yield the sources of a module's kernels, as libgpuarray receives them."""
    for piece in module.support_code:
        for match in SOURCE.finditer(piece.replace(module.hash_placeholder, module.code_hash)):
            if set(re.findall(r"\\(.)", match[1], re.DOTALL)) <= ESCAPES.keys():
                yield re.sub(r"\\(.)", lambda pair: ESCAPES[pair[1]], match[1]).encode()


def start(modules: Iterable[ModuleParts]) -> None:
    """Start to compile the kernels of modules that g++ must compile.

    If several devices are in use, this function does nothing, because it does not know on which
    device a kernel will run.
    """
    contexts = [get_context(name) for name in list_contexts()]
    if len(contexts) != 1 or contexts[0].kind != b"cuda":
        return
    sources = [source for module in modules for source in find_sources(module)]
    library = load_library() if sources else None
    if library:
        library.compile_kernels_ahead(
            len(sources),
            (ctypes.c_char_p * len(sources))(*sources),
            contexts[0].bin_id,
            config.cmodule.jobs or len(os.sched_getaffinity(0)),
        )


early_compilation.listeners.append(start)
