"""The C and C++ files of recipes/theano/src compile without a warning.

Files below gpuarray/ are not compiled, because most of them need cuDNN's headers, which this
environment does not have.
"""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import theano

SOURCES = Path(__file__).parents[2] / "recipes" / "theano" / "src" / "theano"
THUNKS = SOURCES / "tensor" / "c_code"
# Maps a file name extension to the compiler and its flags. Headers have the flags of modules,
# because modules include the headers at run time.
COMPILERS = {
    ".c": ("gcc", "-x", "c", "-std=c11"),
    ".cpp": ("g++", "-x", "c++", "-std=gnu++14"),
    ".h": ("g++", "-x", "c++", "-std=gnu++14", "-fopenmp-simd"),
}
# Compile to assembly, because -fsyntax-only does not warn about unused functions.
TO_ASSEMBLY = ("-S", "-o", "/dev/null")
# Files that do not compile alone: a part of Theano's own lazylinker_c.c, the sections of
# DimShuffle's C code, a header that needs the declarations of a BLAS, and a part of
# theano_products.cpp.
PARTS = (
    "lazylinker_in_order.h",
    "dimshuffle_view.c",
    "theano_gemm.h",
    "theano_products_kernel.h",
    "theano_correlation_kernels.h",
    "theano_vector_kernels.h",
)
UNITS = sorted(
    file
    for file in SOURCES.rglob("*.*")
    if file.suffix in COMPILERS
    and file.name not in PARTS
    and not file.is_relative_to(SOURCES / "gpuarray")
    and not file.is_relative_to(THUNKS / "thunks")
)
# Headers of Python, NumPy and Theano 1.0.5. The compiler ignores warnings in them (-isystem).
SYSTEM_HEADERS = (
    sysconfig.get_path("include"),
    np.get_include(),
    Path(theano.__file__).parent / "gof" / "c_code",
)


def run_compiler(suffix, code, *options):
    """Compile code as a file with this suffix; return the compiler's messages and its output."""
    compiler, *language = COMPILERS[suffix]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} on PATH")
    command = [
        *(compiler, *language, "-Wall", "-Wextra", "-Werror", *options),
        "-DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION",
        *("-I", SOURCES / "gof" / "c_code"),
        *(part for folder in SYSTEM_HEADERS for part in ("-isystem", folder)),
        "-",
    ]
    english = {**os.environ, "LC_ALL": "C"}
    completed = subprocess.run(
        command, input=code, env=english, capture_output=True, text=True, check=False
    )
    return completed.stderr, completed.stdout


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
def test_code_compiles_without_warnings(file):
    messages, _ = run_compiler(file.suffix, f'#include "{file}"\n', *TO_ASSEMBLY)
    assert messages == ""


def test_thunks_ext_includes_every_file_of_thunks():
    _, rule = run_compiler(".cpp", f'#include "{THUNKS / "thunks_ext.cpp"}"\n', "-MM")
    included = {Path(word) for word in rule.replace("\\\n", " ").split()}
    parts = set((THUNKS / "thunks").iterdir())
    assert parts
    assert parts <= included


@pytest.mark.parametrize("suffix", COMPILERS)
def test_a_warning_is_detected(suffix):
    messages, _ = run_compiler(suffix, "static int first(int second) { return 0; }\n", *TO_ASSEMBLY)
    assert "unused parameter" in messages
    assert "defined but not used" in messages
