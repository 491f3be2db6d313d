"""Without the patch, a missing C++ compiler gives a log line and functions 100 times slower."""

import shutil

import pytest

# The environment's theanorc may name a compiler.
IMPORT = """
import sys
sys.prefix = sys.base_prefix = "/nonexistent"
import theano
print(theano.config.linker)
"""


def test_no_compiler(run_python):
    result = run_python(IMPORT, PATH="/nonexistent")
    assert result.returncode != 0
    error = result.stderr.splitlines()[-1]
    assert error.startswith("RuntimeError: No C++ compiler: g++ is not on PATH")
    assert "Install g++" in error
    assert "THEANO_FLAGS=cxx=" in error


def test_compiler_that_is_not_there(run_python):
    result = run_python(IMPORT, flags="cxx=/nonexistent/g++")
    assert result.returncode != 0
    assert "cxx names no executable: /nonexistent/g++" in result.stderr.splitlines()[-1]


def test_compiler_that_is_not_executable(run_python, tmp_path):
    (tmp_path / "g++").touch()
    result = run_python(IMPORT, flags=f"cxx={tmp_path}/g++")
    assert "cxx names no executable" in result.stderr.splitlines()[-1]


def test_python_mode_for_those_who_ask_for_it(run_python):
    result = run_python(IMPORT, "-W", "error", PATH="/nonexistent", flags="cxx=")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "vm"
    assert "g++" not in result.stderr


def test_compiler_off_the_path(run_python):
    """It was given, but Theano chose the Python linker all the same."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ on PATH")
    result = run_python(
        IMPORT, PATH="/nonexistent", flags=f"blas.ldflags=,gcc.cxxflags=-B/usr/bin,cxx={compiler}"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "cvm"
