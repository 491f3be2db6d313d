"""numpy 1.26 has no numpy.distutils.__config__; blas.ldflags is split as a shell splits it.

Without the patch, the search for a BLAS raises AttributeError: theano cannot be imported unless
blas.ldflags is set. And a directory with a space is cut there, so that no product compiles.
"""

from theano.tensor import blas


def test_search_for_a_blas(run_python):
    result = run_python(
        """
        import theano
        print(repr(theano.configdefaults.default_blas_ldflags()))
        """,
        "-W",
        "error",
        # The search that runs at import, where no theanorc says what it finds, is not this one.
        flags="blas.ldflags=",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("'")


FLAGS = "-L\"{0}\" '-lone' -ltwo"


def test_a_directory_with_a_space(tmp_path):
    directory = tmp_path / "a directory"
    directory.mkdir()
    (directory / "libone.so").touch()
    flags = FLAGS.format(directory)
    assert blas._ldflags(flags, False, False, True, False) == [str(directory)]
    assert blas._ldflags(flags, True, False, False, False) == ["one", "two"]
    assert blas._ldflags(flags, False, True, False, False) == [f"-Wl,-rpath,{directory}"]
