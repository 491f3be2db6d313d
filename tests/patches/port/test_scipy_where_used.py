"""scipy 1.8 renamed the modules of scipy.signal's internals; they are imported where they are used.

Without the patch, Theano takes scipy.signal for missing and no convolution runs in Python code, and
import theano takes twice as long: it imports all of scipy.stats. It also starts MPI.
"""

import numpy as np
import theano
from theano import tensor
from theano.tensor.nnet.conv import ConvOp

IMAGES = np.random.RandomState(0).rand(2, 3, 6, 6)
FILTERS = np.random.RandomState(1).rand(4, 3, 3, 3)


def test_convolution_in_python():
    x, w = tensor.dtensor4s("x", "w")
    convolved = tensor.nnet.conv2d(x, w, border_mode="half", subsample=(2, 2))
    outputs = [convolved, *tensor.grad(tensor.sqr(convolved).sum(), [x, w])]
    in_python = theano.function([x, w], outputs, mode=theano.Mode("py", None))
    in_c = theano.function([x, w], outputs)
    for found, expected in zip(in_python(IMAGES, FILTERS), in_c(IMAGES, FILTERS), strict=True):
        np.testing.assert_allclose(found, expected)


def test_old_convolution_in_python():
    x, w = tensor.dtensor4s("x", "w")
    convolved = ConvOp((3, 6, 6), (3, 3), nkern=4, bsize=2)(x, w)
    in_python = theano.function([x, w], convolved, mode=theano.Mode("py", None))
    in_c = theano.function([x, w], convolved)
    np.testing.assert_allclose(in_python(IMAGES, FILTERS), in_c(IMAGES, FILTERS))


def test_import_leaves_slow_modules_out(run_python):
    result = run_python(
        """
        import sys, theano
        assert not {"scipy.stats", "scipy.signal"} & set(sys.modules)
        """,
        flags="blas.ldflags=",
    )
    assert result.returncode == 0, result.stderr


def test_chi2sf_in_python():
    x, k = tensor.dvectors("x", "k")
    survival = tensor.chi2sf(x, k)
    in_python = theano.function([x, k], survival, mode=theano.Mode("py", None))
    np.testing.assert_allclose(in_python([1.0, 2.0], [1.0, 2.0]), [0.31731051, 0.36787944])


def test_import_does_not_start_mpi(run_python, tmp_path):
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "MPI.py").write_text("print('started')\nCOMM_WORLD = 'all'\n")
    program = """
        import theano.tensor.io
        print("imported")
        print(theano.tensor.io.mpi_enabled)
        assert theano.tensor.io.comm == "all" and not hasattr(theano.tensor.io, "others")
        """
    result = run_python(program, PYTHONPATH=str(tmp_path))
    assert result.stdout.split("\n") == ["imported", "started", "True", ""], result.stderr
    # As mpi4py raises where it finds no library.
    (tmp_path / "mpi4py" / "MPI.py").write_text("raise RuntimeError('cannot load MPI library')\n")
    result = run_python(program, PYTHONPATH=str(tmp_path))
    assert result.stdout == "imported\nFalse\n"
    assert "cannot load MPI library" in result.stderr
