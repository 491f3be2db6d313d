"""run/shallow-composites.patch compiles long chains of elementwise operations.

Without the patch, printing or pickling deeply nested Composites raises RecursionError. Each new
Composite copies and merges its graph.
"""

import copy
import pickle

import numpy as np
import pytest
import theano
from theano import scalar
from theano import tensor as tt
from theano.gof.fg import MissingInputError
from theano.tensor.elemwise_fusion import MAX_COMPOSITE_DEPTH


def apply_chain(x, n):
    """Apply n sines and n additions to an array or a variable."""
    for i in range(n):
        x = np.sin(x) + (i % 3 + 1) if isinstance(x, np.ndarray) else tt.sin(x) + (i % 3 + 1)
    return x


@pytest.mark.parametrize("n", [15, 200])
def test_a_long_chain_is_fused_in_parts(n):
    x = tt.dvector()
    function = theano.function([x], apply_chain(x, n))
    value = np.linspace(-1, 1, 5)
    np.testing.assert_allclose(function(value), apply_chain(value, n))
    nodes = function.maker.fgraph.apply_nodes
    assert len(nodes) == -(-2 * n // MAX_COMPOSITE_DEPTH)
    assert all(node.op.scalar_op.depth <= MAX_COMPOSITE_DEPTH for node in nodes)


def test_independent_operations_are_fused_without_a_limit():
    """The limit is on the depth of a Composite, not on the number of its operations."""
    xs = tt.dvectors(60)
    product = tt.sin(xs[0])
    function = theano.function(xs, sum((tt.sin(x) * tt.cos(x) for x in xs), product))
    (node,) = function.maker.fgraph.apply_nodes
    assert node.op.scalar_op.depth == 3
    value = np.array([0.5])
    expected = 60 * np.sin(value) * np.cos(value) + np.sin(value)
    np.testing.assert_allclose(function(*[value] * 60), expected)


def list_nodes(inputs, outputs):
    """Return the nodes of a new Composite's graph."""
    return scalar.Composite(inputs, outputs).fgraph.toposort()


def test_the_graph_is_made_lazily():
    x, y = scalar.float64("x"), scalar.float64("y")
    op = scalar.Composite([x, y], [x * y + x])
    assert op.depth == 2
    for copied in (op, copy.copy(op), pickle.loads(pickle.dumps(op)), op.make_new_inplace()):
        assert not {"fgraph", "_impls"} & vars(copied).keys()
        assert copied == op
        assert hash(copied) == hash(op)
        assert copied.impl(2.0, 3.0) == 8
        assert {"fgraph", "_impls"} <= vars(copied).keys()
    with pytest.raises(AttributeError, match="other"):
        _ = op.other


def test_nothing_is_computed_twice():
    x, y = scalar.float64("x"), scalar.float64("y")
    one, other = (scalar.exp(x + scalar.constant(2.0)) for _ in range(2))
    assert len(list_nodes([x, y], [one * y + other])) == 4
    # Two outputs with the same value: the second is the identity of the first.
    nodes = list_nodes([x], [scalar.exp(x), scalar.exp(x)])
    assert [type(node.op) for node in nodes] == [scalar.Exp, scalar.Identity]


def test_zeros_of_both_signs_are_not_merged():
    x = scalar.float64("x")
    op = scalar.Composite([x], [scalar.switch(x, scalar.constant(0.0), scalar.constant(-0.0))])
    assert [np.signbit(op.impl(value)) for value in (1.0, 0.0)] == [False, True]
    values = tt.dvector()
    result = theano.function([values], tt.elemwise.Elemwise(op)(values))([1, 0])
    assert np.signbit(result).tolist() == [False, True]


def test_a_composite_within_a_composite_is_inlined():
    x, y = scalar.float64("x"), scalar.float64("y")
    inner = scalar.Composite([x, y], [x * y + x])
    op = scalar.Composite([x], [inner(scalar.exp(x), x)])
    assert not any(isinstance(node.op, scalar.Composite) for node in op.fgraph.apply_nodes)
    np.testing.assert_allclose(op.impl(0.5), np.exp(0.5) * 1.5)
    # The inner Composite is unchanged.
    assert inner.impl(2.0, 3.0) == 8


def test_graphs_with_tensors_or_missing_inputs_are_errors():
    x, y, vector = scalar.float64("x"), scalar.float64("y"), tt.dvector()
    with pytest.raises(ValueError, match="exclusively composed of ScalarOp"):
        scalar.Composite([vector], [vector + 1])
    with pytest.raises(MissingInputError):
        _ = scalar.Composite([x], [x + y]).fgraph
