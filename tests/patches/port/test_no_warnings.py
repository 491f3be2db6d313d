"""port/no-warnings.patch removes causes of warnings in ordinary use of Theano.

Without the patch, these programs raise an error under -W error.
"""

from pathlib import Path
from warnings import catch_warnings, simplefilter

import theano


def test_sources_compile_without_a_warning():
    """No source file contains an unknown escape in a string.

    Python 3.11 warns about these escapes, and a later Python will raise an error.
    """
    sources = sorted(Path(theano.__file__).parent.rglob("*.py"))
    assert sources
    with catch_warnings():
        simplefilter("error")
        for source in sources:
            if "tests" not in source.parts:
                compile(source.read_text(encoding="utf-8"), str(source), "exec")


def test_scan_does_not_import_imp(run_python):
    """A scan causes no warning about the deprecated module imp.

    theano.scan imports the GPU back end and PdbBreakpoint, which used imp.
    """
    result = run_python(
        """
        import theano.tests.breakpoint
        x = theano.tensor.dvector()
        theano.scan(lambda a: 2 * a, sequences=x)
        """,
        "-W",
        "error",
        flags="blas.ldflags=",
    )
    assert result.returncode == 0, result.stderr


def test_hex_digest_causes_no_warning(run_python):
    result = run_python(
        "import numpy, theano.printing; print(theano.printing.hex_digest(numpy.arange(3)))",
        "-W",
        "error",
        flags="blas.ldflags=",
    )
    assert result.returncode == 0, result.stderr


def test_the_warning_about_a_compiler_is_logged(run_python, tmp_path):
    """The warning about an unknown compiler is logged.

    Without the patch, Theano logs it by Logger.warn, which is deprecated, so the log call itself
    raises an error under -W error.
    """
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    result = run_python(
        "from theano.gof.cmodule import GCC_compiler; GCC_compiler.compile_args()",
        "-W",
        "error",
        flags=f"blas.ldflags=,cxx={compiler}",
    )
    assert result.returncode == 0, result.stderr
    assert "OPTIMIZATION WARNING" in result.stderr


def test_the_sum_of_a_sparse_and_a_dense_matrix_causes_no_warning(run_python):
    """Without the patch, an optimization passes a variable to NumPy as a dtype."""
    result = run_python(
        """
        import numpy as np, scipy.sparse, theano.sparse
        x, y = theano.sparse.csr_matrix("x"), theano.tensor.dmatrix("y")
        add = theano.function([x, y], theano.sparse.add(x, y))
        assert (add(scipy.sparse.eye(3, format="csr"), np.ones((3, 3))) == np.eye(3) + 1).all()
        """,
        "-W",
        "error",
        flags="blas.ldflags=",
    )
    assert result.returncode == 0, result.stderr
