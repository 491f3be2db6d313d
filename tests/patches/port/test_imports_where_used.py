"""port/imports-where-used.patch imports SciPy and other modules only where they are used.

scipy 1.8 renamed internal modules of scipy.signal. Without the patch, Theano treats scipy.signal as
missing, and no convolution runs in Python code. `import theano` also imports all of scipy.stats and
takes twice as long. If mpi4py is installed, `import theano` starts MPI. The first call of
theano.scan imports theano.gpuarray.
"""

import numpy as np
import pytest
import theano
from theano import tensor
from theano.tensor.blas import Gemv
from theano.tensor.blas_scipy import ScipyGer
from theano.tensor.nnet.conv import ConvOp

IMAGES = np.random.RandomState(0).rand(2, 3, 6, 6)
FILTERS = np.random.RandomState(1).rand(4, 3, 3, 3)


def test_python_code_of_convolutions_equals_c_code():
    x, w = tensor.dtensor4s("x", "w")
    convolved = tensor.nnet.conv2d(x, w, border_mode="half", subsample=(2, 2))
    outputs = [convolved, *tensor.grad(tensor.sqr(convolved).sum(), [x, w])]
    in_python = theano.function([x, w], outputs, mode=theano.Mode("py", None))
    in_c = theano.function([x, w], outputs)
    for actual, expected in zip(in_python(IMAGES, FILTERS), in_c(IMAGES, FILTERS), strict=True):
        np.testing.assert_allclose(actual, expected)


def test_python_code_of_conv_op_equals_c_code():
    x, w = tensor.dtensor4s("x", "w")
    convolved = ConvOp((3, 6, 6), (3, 3), nkern=4, bsize=2)(x, w)
    in_python = theano.function([x, w], convolved, mode=theano.Mode("py", None))
    in_c = theano.function([x, w], convolved)
    np.testing.assert_allclose(in_python(IMAGES, FILTERS), in_c(IMAGES, FILTERS))


def test_import_does_not_import_slow_modules(run_python):
    result = run_python(
        """
        import sys, theano
        slow = {"ast", "concurrent.futures", "inspect", "pdb", "scipy", "socket"}
        assert not slow & set(sys.modules)
        """,
        flags="blas.ldflags=",
    )
    assert result.returncode == 0, result.stderr


def test_scan_does_not_import_gpuarray(run_python):
    result = run_python(
        """
        import sys, theano
        x = theano.tensor.dvector()
        doubled, _ = theano.scan(lambda element: 2 * element, sequences=x)
        assert theano.function([x], doubled, profile=True)([1.0]).tolist() == [2.0]
        assert not {"theano.gpuarray", "scipy"} & set(sys.modules)
        """
    )
    assert result.returncode == 0, result.stderr


def test_scan_imports_the_modules_that_gpuarray_imports(run_python):
    """Programs use these modules as attributes of their packages, for example theano.ifelse."""
    result = run_python(
        """
        import sys, theano
        x = theano.tensor.dvector()
        theano.scan(lambda element: 2 * element, sequences=x)
        imported = set(sys.modules)
        import theano.gpuarray
        added = {name for name in set(sys.modules) - imported if name.startswith("theano.")}
        print(*sorted(name for name in added if not name.startswith("theano.gpuarray")))
        theano.ifelse.ifelse, theano.tensor.nnet.neighbours, theano.sandbox.rng_mrg
        """
    )
    assert result.returncode == 0, result.stderr
    assert not result.stdout.split()


def test_first_use_of_gpuarray_imports_it(run_python):
    result = run_python(
        """
        import theano
        assert not theano.gpuarray.pygpu_activated
        assert not hasattr(theano, "missing")
        """
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_python_code_of_gemv_and_ger_imports_scipys_blas(dtype):
    """In Python, Gemv and Ger import scipy.linalg when called, and compute correct results."""
    a, x, y = tensor.matrix(dtype=dtype), tensor.vector(dtype=dtype), tensor.vector(dtype=dtype)
    ops = Gemv(inplace=False), ScipyGer(destructive=False)
    one = np.ones((), dtype)
    outputs = [ops[0](y, one, a, x, one), ops[1](a, one, y, x)]
    in_python = theano.function([a, x, y], outputs, mode=theano.Mode("py", None))
    matrix, right, left = (np.arange(n).astype(dtype) for n in (6, 3, 2))
    matrix = matrix.reshape(2, 3)
    result = in_python(matrix, right, left)
    np.testing.assert_array_equal(result[0], matrix @ right + left)
    np.testing.assert_array_equal(result[1], matrix + np.outer(left, right))


def test_python_code_of_erf_and_cholesky_imports_scipy(run_python):
    result = run_python(
        """
        import numpy as np, theano
        from theano import tensor
        from theano.tensor.slinalg import cholesky
        x, a = tensor.dscalar(), tensor.dmatrix()
        outputs = [tensor.erf(x), cholesky(a)]
        print(*theano.function([x, a], outputs, mode=theano.Mode("py", None))(1, 4 * np.eye(1)))
        """
    )
    assert result.stdout.split() == ["0.8427007929497148", "[[2.]]"], result.stderr


def test_python_code_of_chi2sf_has_correct_values():
    x, k = tensor.dvectors("x", "k")
    survival = tensor.chi2sf(x, k)
    in_python = theano.function([x, k], survival, mode=theano.Mode("py", None))
    np.testing.assert_allclose(in_python([1.0, 2.0], [1.0, 2.0]), [0.31731051, 0.36787944])


def test_import_does_not_start_mpi(run_python, tmp_path):
    """The first use of comm imports mpi4py, here a stub, which starts MPI."""
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "MPI.py").write_text("print('started')\nCOMM_WORLD = 'all'\n")
    program = """
        import theano
        from theano import tensor
        print("imported")
        print(tensor.mpi_enabled, tensor.io.mpi_enabled)
        assert not hasattr(tensor, "others") and not hasattr(tensor.io, "others")
        print(hasattr(tensor, "comm"))
        assert tensor.comm == tensor.io.comm == tensor.MPI.COMM_WORLD == "all"
        """
    result = run_python(program, PYTHONPATH=str(tmp_path))
    assert result.stdout.split() == ["imported", "started", "True", "True", "True"], result.stderr
    # mpi4py raises this error if it finds no MPI library.
    (tmp_path / "mpi4py" / "MPI.py").write_text("raise RuntimeError('cannot load MPI library')\n")
    result = run_python(program, PYTHONPATH=str(tmp_path))
    assert result.stdout.split() == ["imported", "False", "False", "False"]
    assert "theano.tensor.comm: cannot load MPI library" in result.stderr


def test_mpi_send_calls_mpi4py(run_python, tmp_path):
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "MPI.py").write_text(
        "class COMM_WORLD:\n"
        "    def Isend(data, destination, tag):\n"
        "        print('sent', data.sum(), destination, tag)\n"
    )
    program = """
        import numpy, theano
        from theano import tensor
        x = tensor.vector()
        send = theano.function([x], tensor.io.MPISend(1, 2)(x)[0])
        print("compiled")
        send(numpy.ones(3, theano.config.floatX))
        """
    result = run_python(program, PYTHONPATH=str(tmp_path))
    assert result.stdout.splitlines() == ["compiled", "sent 3.0 1 2"], result.stderr


@pytest.mark.parametrize("name", ["chi2sf", "erf", "gamma", "gammainc", "j0", "psi", "tri_gamma"])
def test_python_code_of_scipys_functions_equals_c_code(name):
    op = getattr(theano.scalar, name)
    inputs = [theano.scalar.float64() for _ in range(op.nin)]
    values = [1.5, 2.5][: op.nin]
    in_c = theano.function(inputs, op(*inputs), mode=theano.Mode("cvm", None))
    np.testing.assert_allclose(op.impl(*values), in_c(*values))


def test_a_failed_optimizer_starts_the_debugger(run_python):
    """The flag on_opt_error=pdb selects this."""
    result = run_python(
        """
        import pdb, theano
        from theano.gof.opt import SeqOptimizer, optimizer
        pdb.post_mortem = lambda traceback: print(type(traceback).__name__)
        failing = SeqOptimizer([optimizer(lambda _: 1 / 0)], failure_callback=SeqOptimizer.warn)
        x = theano.tensor.dscalar()
        theano.function([x], 2 * x, mode=theano.Mode("py", failing))
        """,
        flags="on_opt_error=pdb",
    )
    assert result.stdout == "traceback\n", result.stderr
