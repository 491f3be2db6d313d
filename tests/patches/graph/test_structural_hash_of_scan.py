"""graph/structural-hash-of-scan.patch hashes a Scan by the structure of its inner graph.

Without the patch, each new Scan generates the key of a C module for its inner graph, although no
such module exists.
"""

import itertools
import pickle

import numpy as np
import theano
import theano.tensor as tt
from theano.gof.cc import CLinker
from theano.gof.graph import io_toposort, is_in_ancestors
from theano.scan_module import graphs
from theano.scan_module.merging import find_scans_before
from theano.scan_module.scan_op import Scan
from theano.scan_module.scan_utils import equal_computations, hash_computations


def make_scan(step):
    """Return the op of a scan over three steps."""
    x = tt.dvector("x")
    out, _ = theano.scan(step, outputs_info=x, n_steps=3)
    while not isinstance(out.owner.op, Scan):
        out = out.owner.inputs[0]
    return out.owner.op


def test_no_key_of_a_module_is_made(monkeypatch):
    def refuse(*_):
        raise AssertionError("a Scan has no C module")

    monkeypatch.setattr(CLinker, "cmodule_key_variables", refuse)
    assert hash(make_scan(tt.tanh)) == hash(make_scan(tt.tanh))
    assert hash(make_scan(tt.tanh)) != hash(make_scan(tt.exp))


def test_equal_scans_have_equal_hashes():
    def shared(state):
        twice = state * 2
        return twice + twice

    one, other = make_scan(shared), make_scan(lambda state: state * 2 + state * 2)
    assert one == other
    assert hash(one) == hash(other)


def test_graphs_that_differ_have_different_hashes():
    x, y = tt.dvectors("x", "y")
    graphs = [x + 1, x + 2, y + 1, x - 1, x.sum(), x, y, tt.constant(1.0), tt.constant(2.0)]
    assert len(set(hash_computations(graphs))) == len(graphs)
    assert hash_computations([x - y], [x, y]) != hash_computations([x - y], [y, x])


def test_constants_are_hashed_by_their_values():
    x = tt.dvector("x")
    graphs = [x + tt.constant([1.0, 2.0]) for _ in range(2)]
    assert equal_computations(graphs[:1], graphs[1:])
    assert len(set(hash_computations(graphs))) == 1


def test_a_hash_is_not_pickled():
    scan = make_scan(tt.tanh)
    hash(scan)
    assert pickle.loads(pickle.dumps(scan))._hash_inner_graph is None


def test_equal_graphs_have_equal_hashes():
    """If equal_computations is true for two graphs, their hashes are equal.

    The graphs may contain different objects for equal constants, and share nodes differently.
    """
    x = tt.dvector("x")

    def graphs():
        for number in (0.0, -0.0, float("nan"), -float("nan"), 1, np.float32(1), True):
            once = x * tt.constant(number)
            yield once + once
            yield x * tt.constant(number) + x * tt.constant(number)
        for value in ([1.0, float("nan")], [0.0, 1.0], [-0.0, 1.0], np.ones(2, "float32")):
            yield x[: tt.constant(2)] * tt.constant(value)

    outputs = list(graphs()) + list(graphs())
    hashes = hash_computations(outputs, [x])
    equal = 0
    for (one, hash_of_one), (other, hash_of_other) in itertools.combinations(
        zip(outputs, hashes, strict=True), 2
    ):
        if equal_computations([one], [other], [x], [x]):
            equal += 1
            assert hash_of_one == hash_of_other
    assert equal >= len(outputs) / 2


def make_random_expressions(random):
    """Return expressions; some of them are equal computations."""
    x, y = tt.dvectors("x", "y")
    expressions = [x, y, tt.constant(1.0), tt.constant(1.0), x[1], x[1], x.dimshuffle("x", 0)[0]]
    for _ in range(30):
        one, other = (expressions[i] for i in random.randint(len(expressions), size=2))
        expressions.append([tt.add, tt.sub, tt.maximum][random.randint(3)](one, other))
        expressions.append(tt.exp(one) if random.randint(2) else one[..., None].sum())
    return expressions


def test_may_be_equal_is_true_for_equal_computations():
    equal = 0
    for seed in range(10):
        expressions = make_random_expressions(np.random.RandomState(seed))
        comparison = graphs.Computations(expressions)
        for x, y in itertools.product(expressions, repeat=2):
            if equal_computations([x], [y]):
                assert comparison.may_be_equal(x, y)
                equal += x is not y
    assert equal > 100


def test_graphs_that_differ_in_their_last_nodes_are_not_hashed(monkeypatch):
    monkeypatch.setattr(graphs, "hash_computations", lambda *_: 1 / 0)
    x = tt.dvector("x")
    deep = tt.tanh(tt.exp(tt.sqr(x)))
    expressions = [deep + 1, deep - 1, deep[1:], deep[:-1], x, deep, tt.dvector("y")]
    comparison = graphs.Computations(expressions)
    for one, other in itertools.combinations(expressions, 2):
        assert not comparison.may_be_equal(one, other)


def test_find_scans_before_returns_the_ancestors_of_each_scan():
    x = tt.dvector("x")
    first, second = (theano.scan(step, outputs_info=x, n_steps=3)[0] for step in (tt.tanh, tt.exp))
    third, _ = theano.scan(tt.sin, outputs_info=first[-1] + 1, n_steps=3)
    fourth, _ = theano.scan(tt.cos, outputs_info=third[-1] * second[-1], n_steps=3)
    nodes = io_toposort([x], [fourth, first, second])
    scans = [node for node in nodes if isinstance(node.op, Scan)]
    before = find_scans_before(nodes, scans)
    assert [len(before[scan]) for scan in scans].count(0) == 2
    for one, other in itertools.permutations(scans, 2):
        assert (one in before[other]) is is_in_ancestors(other, one)
