"""Functions use shipped modules and shipped loops, and their results are right."""

import sys

import numpy as np
import theano
from theano import tensor
from theano.gof import linker_parts, shipped

assert theano.config.cmodule.shipped, "etc/theanorc names no shipped modules"

x, y = tensor.fmatrices("xy")
rows = tensor.lvector("rows")
rng = np.random.RandomState(1)
a, b = (rng.standard_normal((5, 5)).astype("float32") for _ in range(2))
for result, expected in [
    (tensor.dot(x, y), a @ b),
    (tensor.nnet.softmax(x) + 0 * y, np.exp(a) / np.exp(a).sum(1, keepdims=True)),
    (tensor.set_subtensor(x[rows], 0 * y[:3]), a * [[0], [1], [1], [1], [0]]),
    (tensor.exp(x), np.exp(a)),
    (x.sum(axis=0), a.sum(0)),
]:
    function = theano.function([x, y, rows], result, on_unused_input="ignore")
    np.testing.assert_allclose(function(a, b, [4, 0, 4]), expected, rtol=1e-5)
if not shipped.read_index():
    print("skipped: the package contains no modules for this processor")
    sys.exit()
loaded = [module for module in linker_parts.shipped_modules.values() if module]
modules = [module for module in loaded if hasattr(module, "__file__")]
# Three ops have modules: the product, softmax and the assignment to rows.
assert len(modules) == 3, f"{len(modules)} of 3 shipped modules were loaded"
# exp and the sum have shipped loops. With amdlibm, only the sum has one, because exp calls amdlibm.
assert len(loaded) > len(modules), "no shipped loops were loaded"
