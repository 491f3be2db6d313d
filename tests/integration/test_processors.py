"""Emulate a processor with QEMU: all programs that a command starts must run on this processor."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import require

from builder.common.errors import HostToolMissing
from builder.proof import processors

# Run a command in a child process that has no environment variables.
CHILD = "import subprocess, sys; subprocess.run(sys.argv[1:], check=True, env={})"
FEATURES = """
import numpy.core._multiarray_umath as numpy, pathlib
shown = pathlib.Path("/proc/cpuinfo").read_text()
print(numpy.__cpu_features__["SSE42"], numpy.__cpu_features__["AVX"], " avx " in shown)
"""


@pytest.fixture
def nehalem() -> Iterator[list[str]]:
    """Yield the command prefix that emulates a Nehalem, which has SSE4.2 and no AVX."""
    require(processors.QEMU)
    try:
        with processors.emulate("Nehalem") as words:
            yield words
    except HostToolMissing as error:
        pytest.skip(str(error))


def test_children_see_the_emulated_processor(prefix: Path, nehalem: list[str]) -> None:
    python = [str(prefix / "bin" / "python"), "-c"]
    child = [*nehalem, sys.executable, "-c", CHILD, *python, FEATURES]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    assert done.stdout == "True False False\n", done.stderr


def test_march_native_is_the_emulated_processor(prefix: Path, nehalem: list[str]) -> None:
    compiler = prefix / "bin" / "x86_64-conda-linux-gnu-g++"
    command = [*nehalem, compiler, *["-march=native", "-x", "c++", "-E", "-dM", "/dev/null"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    macros = done.stdout.splitlines()
    assert "#define __nehalem__ 1" in macros, done.stderr
    assert "#define __AVX__ 1" not in macros
