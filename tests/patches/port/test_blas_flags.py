"""port/blas-flags.patch searches for a BLAS without numpy.distutils, and translates old flags.

NumPy 1.26 has no numpy.distutils.__config__. Without the patch, the search raises AttributeError,
so theano cannot be imported unless blas.ldflags is set. No matrix product compiles if blas.ldflags
contains a directory name with a space, or names a BLAS that is not installed. The import fails if
the flag device names a device of the old GPU back end.
"""

import pytest
from theano import config
from theano.misc import old_flags
from theano.tensor import blas


def test_the_search_for_a_blas_returns_flags_without_warnings(run_python):
    result = run_python(
        """
        import theano
        print(repr(theano.configdefaults.default_blas_ldflags()))
        """,
        "-W",
        "error",
        # If no theanorc sets the flags, Theano searches for a BLAS at import.
        flags="blas.ldflags=",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("'")


FLAGS = "-L\"{0}\" '-lone' -ltwo"


def test_a_quoted_directory_may_contain_a_space(tmp_path):
    directory = tmp_path / "a directory"
    directory.mkdir()
    (directory / "libone.so").touch()
    flags = FLAGS.format(directory)
    assert blas._ldflags(flags, False, False, True, False) == [str(directory)]
    assert blas._ldflags(flags, True, False, False, False) == ["one", "two"]
    assert blas._ldflags(flags, False, True, False, False) == [f"-Wl,-rpath,{directory}"]


PRODUCT = """
import numpy as np, theano
from theano import tensor
x = tensor.dmatrix()
print(theano.config.blas.ldflags, theano.function([x], tensor.dot(x, x))([[2.0]]))
"""
OWN_FLAGS = old_flags.find_own_blas()
OTHER_BLAS = "openblas" if "mkl" in OWN_FLAGS else "mkl_rt"


@pytest.fixture
def multiply(run_python):
    """Return a function that multiplies matrices with a value of blas.ldflags.

    It returns the log and the value of blas.ldflags that Theano used.
    """

    def run(flags, **environ):
        completed = run_python(PRODUCT, flags=f"blas.ldflags={flags}", **environ)
        used, _, product = completed.stdout.rpartition(" [[")
        assert product == "4.]]\n", completed.stderr
        return completed.stderr, used

    return run


@pytest.mark.parametrize(
    "flags", ["-lblas", "-lf77blas -latlas", f"-l{OTHER_BLAS}", "-lm -fopenmp"]
)
def test_the_environments_blas_replaces_libraries_without_a_directory(multiply, flags):
    log, used = multiply(flags)
    assert used == OWN_FLAGS
    assert len(log.splitlines()) == 1
    assert f"blas.ldflags={flags}: Theano uses this environment's BLAS, -l" in log


def test_the_name_of_the_environments_blas_causes_no_warning(multiply):
    assert multiply("-lmkl_rt" if "mkl" in OWN_FLAGS else "-lopenblas") == ("", OWN_FLAGS)


@pytest.mark.parametrize(
    "flags", [f"-L/nowhere -l{OTHER_BLAS}", "-L/usr/lib -lm", "/nowhere/libblas.so"]
)
def test_flags_that_do_not_link_are_replaced(multiply, flags):
    log, used = multiply(flags)
    assert used == OWN_FLAGS
    assert len(log.splitlines()) == 1


def test_a_blas_with_a_directory_is_used(multiply):
    flags = f"{OWN_FLAGS} -lm".replace('"', "")
    assert multiply(flags) == ("", flags)


def test_a_missing_theanorc_has_no_flags(tmp_path):
    assert old_flags.read_theanorc("blas", "ldflags", (str(tmp_path),)) == ("", "")


def test_flags_of_another_compiler_are_dropped_with_a_warning(run_python):
    code = """
    import theano
    x = theano.tensor.dvector()
    theano.function([x], x + 1)
    print(theano.config.gcc.cxxflags)
    """
    completed = run_python(
        code, flags="gcc.cxxflags=-O2 -fbracket-depth=16000 -Wno-c++11-narrowing"
    )
    assert completed.stdout == "-O2 -Wno-c++11-narrowing\n", completed.stderr
    assert completed.stderr.endswith("does not know -fbracket-depth=16000: the flag is ignored\n")
    assert len(completed.stderr.splitlines()) == 1
    assert run_python(code, flags="gcc.cxxflags=-Wno-c++11-narrowing").stderr == ""


def test_an_op_does_not_change_other_ops_flags():
    blas.ldflags(libs=False, flags=True).append("-fopenmp")
    assert "-fopenmp" not in blas.ldflags(libs=False, flags=True)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("device=gpu0", "device=gpu0 names the old GPU back end; Theano uses cuda0"),
        ("init_gpu_device=gpu", "init_gpu_device=gpu names the old GPU back end; Theano uses cuda"),
        ("dnn.conv.workmem=small", "the current flag is dnn.conv.algo_fwd"),
        ("dnn.conv.algo_bwd=none", "the current flag is dnn.conv.algo_bwd_filter"),
    ],
)
def test_flags_from_before_theano_1_cause_a_warning(run_python, flags, message):
    completed = run_python("import theano", flags=flags)
    assert completed.returncode == 0, completed.stderr
    assert message in completed.stderr.splitlines()[0]
    assert "theano-fast rc translate" in completed.stderr
    assert "Traceback" not in completed.stderr


def test_a_compilers_path_may_have_a_space(tmp_path):
    compiler = tmp_path / "a b" / "g++"
    compiler.parent.mkdir()
    compiler.write_text(f'#!/bin/sh\nexec "{config.cxx}" "$@"\n')
    compiler.chmod(0o755)
    assert old_flags.filter_cxxflags("-O1", str(compiler)) == "-O1"
