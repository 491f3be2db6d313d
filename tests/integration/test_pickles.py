"""Load a pickle of stock Theano in the openblas environment, and compute with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from support import Result

# Stock Theano 1.0.5 wrote this file on CPython 3.9 and NumPy 1.21:
#   x = tensor.dmatrix("x")
#   w = theano.shared(np.arange(6.0).reshape(3, 2), name="w")
#   sums, _ = theano.scan(lambda row, total: row + total, x, tensor.zeros_like(x[0]))
#   cost = tensor.nnet.softmax(tensor.dot(sums, w))[:, 0].sum()
#   train = theano.function([x], cost, updates=[(w, w - 0.1 * tensor.grad(cost, w))])
#   pickle.dump((train, w), stream, 2)
STOCK = Path(__file__).parent / "data" / "stock-1.0.5.pickle.gz"
# Stock Theano's results with this pickle.
LOSSES = [0.04989849633420156, 0.04841459230391741]
WEIGHT = -0.009871817037188084

PROGRAM = f"""
import gzip, pickle
import numpy as np
with gzip.open({str(STOCK)!r}) as stream:
    train, w = pickle.load(stream)
np.testing.assert_allclose([train(np.ones((2, 3))) for _ in range(2)], {LOSSES}, rtol=1e-12)
np.testing.assert_allclose(w.get_value()[0, 0], {WEIGHT}, rtol=1e-12)
"""


def test_a_training_function_and_its_weights_are_loaded(
    prefix: Path, run: Callable[..., Result]
) -> None:
    """The loaded function takes two training steps with stock Theano's losses and weights."""
    done = run(prefix / "bin" / "python", "-W", "error", "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
