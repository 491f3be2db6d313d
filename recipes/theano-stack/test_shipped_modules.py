"""Ops that the environment has modules of run without g++, and right."""

import sys

import numpy as np
import theano
from theano import tensor
from theano.gof import cc, shipped

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
if not shipped.index():
    print("not checked: no modules were shipped for this processor")
    sys.exit()
found = [module for module in cc.shipped_modules.values() if module]
whole = [module for module in found if hasattr(module, "__file__")]
assert len(whole) == 3, f"{len(whole)} modules of 3 were found"
# With amdlibm, those of the sum alone.
assert len(found) > len(whole), "no loops were found"
