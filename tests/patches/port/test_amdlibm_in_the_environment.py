"""With lib.amdlibm, Theano takes amdlibm.h and libamdlibm.so from the environment.

Without the patch it does not find them, and nothing compiles.
"""

import os
import subprocess
import venv
from pathlib import Path

import pytest
import theano

HEADER = """
#ifndef REPLACE_WITH_AMDLIBM
#error "not asked to replace the C library's functions"
#endif
extern "C" void amd_vrda_exp(long n, const double *x, double *z);
"""
# No exponential: the value tells whose function was called.
LIBRARY = """
void amd_vrda_exp(long n, const double *x, double *z)
{
    for (long i = 0; i < n; i++)
        z[i] = x[i] + 1000;
}
"""
PROGRAM = """
import theano
from theano import tensor
x = tensor.dvector()
print(theano.function([x], tensor.exp(x))([1, 2]))
"""


@pytest.fixture
def environment(tmp_path):
    """An environment upon this one, with an amdlibm of its own."""
    # Links: a copy of the interpreter would look for its library beside itself.
    venv.create(tmp_path / "env", system_site_packages=True, with_pip=False, symlinks=True)
    include, lib = tmp_path / "env" / "include", tmp_path / "env" / "lib"
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
        [environment / "bin" / "python", "-c", PROGRAM],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(theano.__file__).parents[1]),
            "HOME": str(environment),
            "THEANO_FLAGS": f"lib.amdlibm=True,base_compiledir={compiledir}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[1001. 1002.]"
