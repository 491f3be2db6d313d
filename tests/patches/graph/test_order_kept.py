"""graph/order-kept.patch sorts a graph again only after a change.

Without the patch, each optimizer that walks a graph sorts it first.
"""

import pickle
from collections import OrderedDict

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.gof import FunctionGraph, graph, opt


@pytest.fixture
def sorts(monkeypatch):
    """Record the outputs of each sorted graph."""
    calls = []
    plain = graph.io_toposort

    def sort(inputs, outputs, *more):
        calls.append(outputs)
        return plain(inputs, outputs, *more)

    monkeypatch.setattr(graph, "io_toposort", sort)
    return calls


@pytest.fixture
def fgraph():
    x = tt.matrix("x")
    return FunctionGraph([x], [tt.exp(x) + tt.log(x), tt.sqr(x)])


def fresh(fgraph):
    return graph.io_toposort(fgraph.inputs, fgraph.outputs)


def test_kept(fgraph, sorts):
    first = fgraph.toposort()
    assert first == fresh(fgraph)
    sorts.clear()
    seen = []
    nothing = opt.local_optimizer(None)(seen.append)
    for order in ("in_to_out", "out_to_in"):
        opt.TopoOptimizer(nothing, order=order).apply(fgraph)
    opt.EquilibriumOptimizer([nothing], max_use_ratio=10).apply(fgraph)
    assert set(seen) == set(first)
    assert fgraph.toposort() == first
    assert not sorts


def test_each_own(fgraph):
    """A caller that changes its list does not change the lists of others."""
    fgraph.toposort().clear()
    assert fgraph.toposort() == fresh(fgraph)


def test_changes(fgraph):
    """The graph is sorted again after a change of an input or output, and after undoing it."""
    order = fgraph.toposort()
    adding, before = fgraph.outputs[0].owner, fgraph.outputs[1]
    fgraph.change_input(adding, 0, tt.tanh(fgraph.inputs[0]))
    assert fgraph.toposort() == fresh(fgraph) != order
    order = fgraph.toposort()
    fgraph.change_input("output", 1, tt.cosh(fgraph.inputs[0]))
    assert fgraph.toposort() == fresh(fgraph) != order
    fgraph.change_input("output", 1, before)
    assert fgraph.toposort() == fresh(fgraph)
    fgraph.add_input(tt.matrix("y"))
    assert fgraph.toposort() == fresh(fgraph)


def test_orderings(fgraph):
    """The orderings of features are requested each time."""
    order = fgraph.toposort()
    one, other = (output.owner for output in fgraph.outputs)

    class Later(theano.gof.toolbox.Feature):
        def orderings(self, fgraph):
            return OrderedDict([(self.node, [one if self.node is other else other])])

    later = Later()
    fgraph.attach_feature(later)
    for later.node in (one, other):
        assert fgraph.toposort()[-1] is later.node
    fgraph.remove_feature(later)
    assert fgraph.toposort() == order


def test_pickled(fgraph):
    fgraph.toposort()
    loaded = pickle.loads(pickle.dumps(fgraph))
    assert loaded.sorted_nodes is None
    assert loaded.toposort() == fresh(loaded)


@pytest.mark.parametrize("seed", range(5))
def test_random_changes(seed):
    """Random changes, undone changes and a copy have the right order."""
    random = np.random.RandomState(seed)
    x = tt.dvector("x")
    fgraph = FunctionGraph([x], [tt.exp(x) + tt.log(x), tt.sqr(x) * x], clone=False)
    fgraph.attach_feature(theano.gof.toolbox.ReplaceValidate())
    ops = (tt.exp, tt.tanh, tt.sqr)
    for _ in range(40):
        order = fgraph.toposort()
        old = order[random.randint(len(order))].outputs[0]
        before = fgraph.checkpoint()
        new = ops[random.randint(3)](old.owner.inputs[0] if random.randint(2) else x)
        fgraph.replace(old, new, reason="chosen")
        assert fgraph.toposort() == fresh(fgraph)
        if random.randint(2):
            fgraph.revert(before)
            assert set(fgraph.toposort()) == set(order)
        assert fgraph.toposort() == fresh(fgraph)
        copy = fgraph.clone()
        assert copy.toposort() == fresh(copy)
