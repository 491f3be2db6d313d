"""Long chains of elementwise operations compile.

Without the patch, a RecursionError is raised, of printing or pickling one Composite in another.
"""

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.tensor.opt import MAX_COMPOSITE_DEPTH


def chain(x, n):
    for i in range(n):
        x = np.sin(x) + (i % 3 + 1) if isinstance(x, np.ndarray) else tt.sin(x) + (i % 3 + 1)
    return x


@pytest.mark.parametrize("n", [15, 200])
def test_chain(n):
    x = tt.dvector()
    function = theano.function([x], chain(x, n))
    value = np.linspace(-1, 1, 5)
    np.testing.assert_allclose(function(value), chain(value, n))
    nodes = function.maker.fgraph.apply_nodes
    assert len(nodes) == -(-2 * n // MAX_COMPOSITE_DEPTH)
    assert all(node.op.scalar_op.depth <= MAX_COMPOSITE_DEPTH for node in nodes)


def test_depth():
    """Of operations that are not after one another, as many are fused as there are."""
    xs = tt.dvectors(60)
    product = tt.sin(xs[0])
    function = theano.function(xs, sum((tt.sin(x) * tt.cos(x) for x in xs), product))
    (node,) = function.maker.fgraph.apply_nodes
    assert node.op.scalar_op.depth == 3
    value = np.array([0.5])
    expected = 60 * np.sin(value) * np.cos(value) + np.sin(value)
    np.testing.assert_allclose(function(*[value] * 60), expected)
