"""Compile the constant kernels of libgpuarray's BLAS to machine code, and write a C header with it.

``compile_kernels.py LIBGPUARRAY NVRTC...`` reads the sources of the kernels, and the header that they
include, from the file LIBGPUARRAY. NVRTC is a list of libraries to load; the last library is NVRTC,
which needs no GPU. The output has an element for each kernel and architecture. It contains no
architecture from 10.0 on, for which libgpuarray cannot compile (cuda.c).
"""

import ctypes
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# The sources, and the text that they include, are C strings.
SOURCE = re.compile(rb'\0(#include "cluda\.h"\n[^\0]*KERNEL void _?[sd]ge\w+\([^\0]*)\0')
HEADER = re.compile(rb"\0(#ifndef CLUDA_H\n[^\0]*__global__[^\0]*)\0")
N_SOURCES = 6
HEADER_NAME = b"cluda.h"
END_OF_ARCHITECTURES = 100


class Compiler:
    """NVRTC."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of NVRTC; stop the build if it fails."""
        if status := getattr(self.library, name)(*arguments):
            sys.exit(f"{name} failed with status {status}")

    def list_architectures(self) -> list[int]:
        """Return the numbers of the architectures to compile for, such as 75."""
        count = ctypes.c_int()
        self.call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self.call("nvrtcGetSupportedArchs", numbers)
        return [number for number in numbers if number < END_OF_ARCHITECTURES]

    def compile(self, source: bytes, header: bytes, machine: bytes) -> bytes:
        """Return the machine code of a source for an architecture such as sm_90."""
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        headers, names = (ctypes.c_char_p * 1)(header), (ctypes.c_char_p * 1)(HEADER_NAME)
        options = (ctypes.c_char_p * 2)(b"-arch", machine)
        self.call("nvrtcCreateProgram", ctypes.byref(program), source, None, 1, headers, names)
        self.call("nvrtcCompileProgram", program, 2, options)
        self.call("nvrtcGetCUBINSize", program, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        self.call("nvrtcGetCUBIN", program, code)
        self.call("nvrtcDestroyProgram", ctypes.byref(program))
        return code.raw


def format_bytes(data: bytes) -> str:
    """Return the initializer of a C array."""
    return "{" + ",".join(map(str, data)) + "}"


def write_header(library: bytes, compiler: Compiler) -> Iterator[str]:
    """Yield the lines of the C header."""
    (header,) = HEADER.findall(library)
    sources = SOURCE.findall(library)
    if len(sources) != N_SOURCES:
        sys.exit(f"libgpuarray contains {len(sources)} kernels of its BLAS, not {N_SOURCES}")
    yield f"static const char shipped_header[] = {format_bytes(header + bytes(1))};"
    rows = []
    for i, source in enumerate(sources):
        yield f"static const char source_{i}[] = {format_bytes(source + bytes(1))};"
        for number in compiler.list_architectures():
            code = compiler.compile(source, header, b"sm_%d" % number)
            yield f"static const unsigned char code_{i}_{number}[] = {format_bytes(code)};"
            rows.append(f'{{source_{i}, "sm_{number}", code_{i}_{number}, {len(code)}}}')
    yield f"static const MachineCode shipped[] = {{{', '.join(rows)}}};"


if __name__ == "__main__":
    *_, nvrtc = [ctypes.CDLL(path) for path in sys.argv[2:]]
    print("\n".join(write_header(Path(sys.argv[1]).read_bytes(), Compiler(nvrtc))))
