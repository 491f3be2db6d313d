"""Nodes of one function that need the same module have its key computed once.

Without the patch, it was computed for each node.
"""

import numpy as np
import pytest
import theano
import theano.tensor as tt
from theano.gof.cc import CLinker


@pytest.fixture
def computed(monkeypatch):
    """The nodes whose keys are computed."""
    nodes = []
    compute = CLinker.cmodule_key_

    def counting(self, fgraph, *args, **kwargs):
        nodes.extend(fgraph.toposort())
        return compute(self, fgraph, *args, **kwargs)

    monkeypatch.setattr(CLinker, "cmodule_key_", counting)
    return nodes


def test_alike(computed):
    inputs = [tt.dmatrix() for _ in range(6)]
    function = theano.function(inputs, [each.sum() for each in inputs])
    assert len(computed) == 1
    values = [np.full((2, 2), number) for number in range(6)]
    assert function(*values) == [0, 4, 8, 12, 16, 20]


def test_what_differs(computed):
    x, y, z = tt.dvector(), tt.dvector(), tt.fvector()
    outputs = [x * y, x * x, x * z, z * z, x + y, x * 2, x * 3, 2 * x, y * 3]
    mode = (
        theano.compile.get_default_mode()
        .including("fast_run")
        .excluding("canonicalize", "specialize", "fusion", "inplace")
    )
    function = theano.function([x, y, z], outputs, mode=mode)
    assert len(computed) < len(function.maker.fgraph.apply_nodes)
    values = np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([5.0, 6.0], dtype="float32")
    given = dict(zip((x, y, z), values, strict=True))
    expected = [
        given[x] * given[y],
        given[x] ** 2,
        given[x] * given[z],
        given[z] ** 2,
        given[x] + given[y],
        given[x] * 2,
        given[x] * 3,
        given[x] * 2,
        given[y] * 3,
    ]
    for result, value in zip(function(*values), expected, strict=True):
        assert result.tolist() == value.tolist()


class Unhashable(theano.gof.Type):
    """A type of a user's who did not think of hashes."""

    def __eq__(self, other):
        return type(self) is type(other)

    __hash__ = None

    def filter(self, value, strict=False, allow_downcast=None):
        return value


class Nothing(theano.Op):
    """Makes something of nothing."""

    __props__ = ()

    def make_node(self):
        return theano.Apply(self, [], [Unhashable()()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = "something"


def test_unhashable_types():
    # What a function without inputs returns is copied, by an op that has C code for other types.
    assert theano.function([], Nothing()())() == "something"


def test_what_shares_memory_or_not(computed):
    """Of one op and types: an input twice, constants of one value, other values and other types."""
    x, y = tt.dvectors("x", "y")
    one, other = (tt.constant(np.array([1.0, 2.0])) for _ in range(2))
    row = tt.constant(np.array([3.0]))
    op = tt.Elemwise(theano.scalar.sub)
    pairs = [(x, y), (y, x), (x, x), (x, one), (y, one), (y, other), (one, x), (x, row), (row, y)]
    mode = theano.Mode("cvm", None)
    function = theano.function([x, y], [op(*pair) for pair in pairs], mode=mode)
    assert len(computed) < len(pairs)
    values = {x: np.array([5.0, 7.0]), y: np.array([11.0, 13.0])}
    values.update((each, each.data) for each in (one, other, row))
    for result, (first, second) in zip(function(values[x], values[y]), pairs, strict=True):
        assert result.tolist() == (values[first] - values[second]).tolist()
