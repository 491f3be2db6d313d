"""port/missing-compiler-error.patch raises an error if the C++ compiler is missing.

Without the patch, Theano logs one line and runs all ops in Python, a hundred times slower.
"""

import shutil

import pytest
from theano.misc import old_flags

# The missing prefixes keep Theano from reading a compiler from the environment's theanorc.
IMPORT = """
import sys
sys.prefix = sys.base_prefix = "/nonexistent"
import theano
print(theano.config.linker)
"""


def test_a_missing_compiler_is_an_error(run_python):
    result = run_python(IMPORT, PATH="/nonexistent")
    assert result.returncode != 0
    error = result.stderr.splitlines()[-1]
    assert error.startswith("RuntimeError: No C++ compiler: g++ is not on PATH")
    assert "Install g++" in error
    assert "THEANO_FLAGS=cxx=" in error


def test_a_compiler_that_does_not_exist_is_an_error(run_python):
    result = run_python(IMPORT, flags="cxx=/nonexistent/g++")
    assert result.returncode != 0
    assert "cxx names no executable: /nonexistent/g++" in result.stderr.splitlines()[-1]


def test_a_compiler_that_is_not_executable_is_an_error(run_python, tmp_path):
    (tmp_path / "g++").touch()
    result = run_python(IMPORT, flags=f"cxx={tmp_path}/g++")
    assert "cxx names no executable" in result.stderr.splitlines()[-1]


def test_a_broken_compiler_is_reported_when_it_compiles(run_python, tmp_path):
    compiler = tmp_path / "g++"
    compiler.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    compiler.chmod(0o755)
    compile_function = """
x = theano.tensor.dvector()
theano.function([x], theano.tensor.sqr(x) + 3)
"""
    flags = f"blas.ldflags=,cmodule.shipped=,base_compiledir={tmp_path}"
    result = run_python(IMPORT + compile_function, PATH=str(tmp_path), flags=flags)
    assert result.stdout.splitlines()[0] == "cvm"
    assert result.returncode != 0
    assert "broken" in result.stderr


def test_an_empty_cxx_selects_python_mode(run_python):
    result = run_python(IMPORT, "-W", "error", PATH="/nonexistent", flags="cxx=")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "vm"
    assert "g++" not in result.stderr


def test_a_compiler_that_is_not_on_path_is_used(run_python):
    """Theano uses the compiler that cxx names. Without the patch, it runs all ops in Python."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ on PATH")
    result = run_python(
        IMPORT, PATH="/nonexistent", flags=f"blas.ldflags=,gcc.cxxflags=-B/usr/bin,cxx={compiler}"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "cvm"


@pytest.mark.parametrize(("version", "message"), [(9999, True), (1, False)])
def test_a_compiler_with_a_newer_library_is_reported(run_python, tmp_path, version, message):
    """A warning reports a compiler whose libstdc++ is newer than the environment's.

    Theano uses this compiler. The environment's own compiler causes no warning.
    """
    own, _ = old_flags.read_theanorc("global", "cxx")
    if not own:
        pytest.skip("this environment has no compiler of its own")
    (tmp_path / "libstdc++.so").write_bytes(b"\0GLIBCXX_3.4.%d\0" % version)
    other = tmp_path / "a compiler"
    other.write_text(
        f"""#!/bin/sh
case $1 in -print-file-name=*) echo "{tmp_path}/libstdc++.so" ;; *) exec "{own}" "$@" ;; esac
"""
    )
    other.chmod(0o755)
    program = "import theano; print(theano.config.cxx)"
    completed = run_python(program, flags=f"cxx={other}")
    assert completed.stdout.strip() == str(other), completed.stderr
    lines = [line for line in completed.stderr.splitlines() if "libstdc++" in line]
    assert len(lines) == message, completed.stderr
    assert all(f"GLIBCXX_3.4.{version}" in line and own in line for line in lines)
    completed = run_python(program)
    assert (completed.stdout.strip(), completed.stderr) == (own, "")
