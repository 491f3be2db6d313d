"""A Scan's gradients are searched together for the outputs that later steps know.

Without the patch, each gradient was searched by itself and became a graph of its own.
"""

import numpy as np
import theano
import theano.tensor as tt
from theano.gof.graph import ops
from theano.scan_module.scan_utils import forced_replace


def test_what_several_have_in_common_stays_in_common():
    x, y = tt.dvectors("x", "y")
    known = tt.exp(x)
    common = known * 2
    first, second, other = common + 1, tt.sin(common), x - y
    replaced = forced_replace([first, second, other], known, y)
    products = [node for node in ops([x, y], replaced) if node.op == tt.mul]
    assert len(products) == 1
    function = theano.function([x, y], replaced, mode="FAST_COMPILE")
    one, two = np.array([1.0]), np.array([2.0])
    assert [result.tolist() for result in function(one, two)] == [[5.0], [np.sin(4.0)], [-1.0]]


def test_one_alone_and_none():
    x, y = tt.dvectors("x", "y")
    known = tt.exp(x)
    assert str(theano.printing.pp(forced_replace(known + 1, known, y))) == "(y + TensorConstant{1})"
    assert forced_replace(None, known, y) is None


def test_gradient_of_scan_searches_once_for_each_output(monkeypatch):
    searched = []

    def counting(out, x, y):
        searched.append(len(out))
        return forced_replace(out, x, y)

    monkeypatch.setattr(theano.scan_module.scan_op, "forced_replace", counting)
    weights = [tt.dscalar(f"w{number}") for number in range(5)]
    states, _ = theano.scan(
        lambda state, *given: tt.tanh(state * sum(given)),
        outputs_info=tt.constant(0.5, dtype="float64"),
        non_sequences=weights,
        n_steps=3,
    )
    slopes = tt.grad(states[-1], weights)
    assert searched == [6]
    found = theano.function(weights, slopes)(0.1, 0.2, 0.3, 0.4, 0.5)
    step, slope = 0.5, 0.0
    for _ in range(3):
        after = np.tanh(step * 1.5)
        step, slope = after, (1 - after**2) * (1.5 * slope + step)
    np.testing.assert_allclose(found, [slope] * 5)
