"""port/no-distutils.patch replaces distutils, which Python 3.12 removed.

Without the patch, `import theano` causes a DeprecationWarning.
"""


def test_import_does_not_import_distutils(run_python):
    result = run_python(
        """
        import sys, theano
        assert not {"distutils", "numpy.distutils"} & set(sys.modules)
        """,
        "-W",
        "error",
        flags="blas.ldflags=",
    )
    assert result.returncode == 0, result.stderr


def test_compiler_finds_python_and_numpy(run_python):
    """The include directories, from sysconfig and NumPy, contain the headers that modules need."""
    result = run_python(
        """
        from pathlib import Path
        from theano.gof import cmodule
        headers = {"Python.h", "numpy/arrayobject.h", "theano_mod_helper.h"}
        for header in headers:
            assert any(Path(d, header).is_file() for d in cmodule.std_include_dirs()), header
        assert cmodule._get_ext_suffix().endswith(".so")
        """
    )
    assert result.returncode == 0, result.stderr
