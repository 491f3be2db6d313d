"""Compile kernels as C++ functions, which one thread of the CPU runs as the only device thread."""

import ctypes
import functools
import re
import subprocess
import tempfile
from pathlib import Path

import theano

# Replaces libgpuarray's header cluda.h, and defines CUDA's names for a grid of one thread.
CLUDA = """
#include <stdint.h>
#include <sys/types.h>
#include <algorithm>
#include <cmath>
using std::abs; using std::max; using std::min;
#define KERNEL extern "C"
#define __syncthreads()
#define GLOBAL_MEM
enum { LID_0 = 0, GID_0 = 0, LDIM_0 = 1, GDIM_0 = 1 };
static struct { unsigned x, y, z; } threadIdx, blockIdx, blockDim = {1, 1, 1}, gridDim = {1, 1, 1};
static const int warpSize = 32;
typedef size_t ga_size; typedef ssize_t ga_ssize;
typedef int8_t ga_byte; typedef int32_t ga_int; typedef int64_t ga_long;
typedef uint8_t ga_ubyte; typedef uint16_t ga_ushort; typedef uint32_t ga_uint;
typedef uint64_t ga_ulong;
typedef float ga_float; typedef double ga_double;
"""


@functools.cache
def load_library(code):
    """Compile a kernel's code to a shared library; return the loaded library."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cluda.h").write_text(CLUDA)
        source, library = folder / "kernel.cpp", folder / "kernel.so"
        source.write_text(re.sub(r"extern __shared__ (\w+ \w+)\[\]", r"\1[warpSize]", code))
        options = ["-shared", "-fPIC", "-w", f"-I{folder}", "-o", library, source]
        subprocess.run([theano.config.cxx, *options], check=True)
        return ctypes.CDLL(str(library))


def load_function(kernel):
    """Compile one of the kernels that an op's ``gpu_kernels`` returns; return a ctypes function."""
    return getattr(load_library(kernel.code), kernel.name)
