"""Without the patch, import theano takes twice as long: it imports all of scipy.stats."""

import numpy as np
import theano
from theano import tensor


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
