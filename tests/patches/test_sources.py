"""The repository's own C and C++ code compiles without a warning.

Code that calls cuDNN is not compiled, because this environment does not have its headers.
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
# The compiler and its flags, by file name extension. Modules that g++ compiles at run time include
# the headers.
COMPILERS = {
    ".c": ("gcc", "-x", "c", "-std=c11"),
    ".cpp": ("g++", "-x", "c++", "-std=gnu++14"),
    ".h": ("g++", "-x", "c++", "-std=gnu++14", "-fopenmp-simd"),
}
# Compile into assembly: -fsyntax-only does not warn about unused functions.
WHOLE = ("-S", "-o", "/dev/null")
# Parts of Theano's own C file, and sections of an op's C code.
PARTS = ("lazylinker_in_order.h", "dimshuffle_view.c")
UNITS = sorted(
    file
    for file in SOURCES.rglob("*.*")
    if file.suffix in COMPILERS
    and file.name not in PARTS
    and not file.is_relative_to(SOURCES / "gpuarray")
    and not file.is_relative_to(THUNKS / "thunks")
)
# Headers of other projects may cause warnings.
HEADERS = (
    sysconfig.get_path("include"),
    np.get_include(),
    Path(theano.__file__).parent / "gof" / "c_code",
)


def compiled(suffix, code, *options):
    """Return the compiler's messages about code, and its output."""
    compiler, *language = COMPILERS[suffix]
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} on PATH")
    command = [
        *(compiler, *language, "-Wall", "-Wextra", "-Werror", *options),
        "-DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION",
        *("-I", SOURCES / "gof" / "c_code"),
        *(part for folder in HEADERS for part in ("-isystem", folder)),
        "-",
    ]
    english = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(
        command, input=code, env=english, capture_output=True, text=True, check=False
    )
    return done.stderr, done.stdout


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
def test_code_compiles_without_warnings(file):
    written, _ = compiled(file.suffix, f'#include "{file}"\n', *WHOLE)
    assert written == ""


def test_the_translation_unit_includes_all_parts():
    _, rule = compiled(".cpp", f'#include "{THUNKS / "thunks_ext.cpp"}"\n', "-MM")
    included = {Path(word) for word in rule.replace("\\\n", " ").split()}
    parts = set((THUNKS / "thunks").iterdir())
    assert parts
    assert parts <= included


@pytest.mark.parametrize("suffix", COMPILERS)
def test_a_warning_is_detected(suffix):
    written, _ = compiled(suffix, "static int first(int second) { return 0; }\n", *WHOLE)
    assert "unused parameter" in written
    assert "defined but not used" in written
