"""blas.ldflags is split as a shell splits it: quotes hold a directory with a space together.

Without the patch it is cut at the space, and no product compiles.
"""

from theano.tensor import blas

FLAGS = "-L\"{0}\" '-lone' -ltwo"


def test_a_directory_with_a_space(tmp_path):
    directory = tmp_path / "a directory"
    directory.mkdir()
    (directory / "libone.so").touch()
    flags = FLAGS.format(directory)
    assert blas._ldflags(flags, False, False, True, False) == [str(directory)]
    assert blas._ldflags(flags, True, False, False, False) == ["one", "two"]
    assert blas._ldflags(flags, False, True, False, False) == [f"-Wl,-rpath,{directory}"]
