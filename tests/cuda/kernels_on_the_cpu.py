"""Compile kernels as C++ functions for the CPU, where one thread runs them."""

import ctypes
import functools
import re
import subprocess
import tempfile
from pathlib import Path

import theano

# The definitions of libgpuarray for kernels, and of CUDA for one thread.
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
def library(code):
    """Return the shared library of a kernel's code, which stays loaded."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cluda.h").write_text(CLUDA)
        source, made = folder / "kernel.cpp", folder / "kernel.so"
        source.write_text(re.sub(r"extern __shared__ (\w+ \w+)\[\]", r"\1[warpSize]", code))
        options = ["-shared", "-fPIC", "-w", f"-I{folder}", "-o", made, source]
        subprocess.run([theano.config.cxx, *options], check=True)
        return ctypes.CDLL(str(made))


def function(kernel):
    """Return a kernel as a function."""
    return getattr(library(kernel.code), kernel.name)
