"""port/environment-files.patch finds amdlibm.h and libamdlibm.so in the environment.

Without the patch, no module compiles with the flag lib.amdlibm.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import theano

HEADER = """
#ifndef REPLACE_WITH_AMDLIBM
#error "not asked to replace the C library's functions"
#endif
extern "C" void amd_vrda_exp(long n, const double *x, double *z);
"""
# This stub adds 1000 instead of computing the exponential, so the result shows that it was called.
LIBRARY = """
void amd_vrda_exp(long n, const double *x, double *z)
{
    for (long i = 0; i < n; i++)
        z[i] = x[i] + 1000;
}
"""
PROGRAM = """
import sys
sys.base_prefix = sys.argv[1]
import theano
from theano import tensor
x = tensor.dvector()
print(theano.function([x], tensor.exp(x))([1, 2]))
"""


@pytest.fixture
def environment(tmp_path):
    """Return the prefix of an environment that contains the stub of amdlibm."""
    include, lib = tmp_path / "env" / "include", tmp_path / "env" / "lib"
    include.mkdir(parents=True)
    lib.mkdir()
    (include / "amdlibm.h").write_text(HEADER)
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", lib / "libamdlibm.so"],
        input=LIBRARY,
        text=True,
        check=True,
    )
    return tmp_path / "env"


def test_the_environments_library_is_called(environment, compiledir):
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, environment],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(theano.__file__).parents[1]),
            "HOME": str(environment),
            "THEANO_FLAGS": f"lib.amdlibm=True,base_compiledir={compiledir},"
            f"cxx={theano.config.cxx}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[1001. 1002.]"
