"""graph/cycles-depth-first.patch predicts which nodes may work in-place.

Without the patch, the graph is validated after each node that becomes in-place. A graph of more
than 500 nodes is validated after every tenth node, so one invalid node can undo nine valid nodes.
"""

import numpy as np
import pytest
import theano
import theano.tensor as tt
from theano import scalar
from theano.compile.function_module import Supervisor
from theano.gof import DestroyHandler, FunctionGraph, InconsistencyError, toolbox
from theano.tensor import inplace_elemwise
from theano.tensor.elemwise import Elemwise
from theano.tensor.inplace_elemwise import Changes, Waiting, work_in_place
from theano.tensor.updates_fusion import UpdatesComposite


def make_sum_and_product():
    """Return an Elemwise that computes the sum and the product of two operands."""
    x, y = scalar.float64("x"), scalar.float64("y")
    return Elemwise(UpdatesComposite([x, y], [x + y, x * y]))


def make_random_graph(seed, *features):
    """Make a valid random graph of four inputs; the first input must not be overwritten."""
    random = np.random.RandomState(seed)
    inputs = [tt.dmatrix(f"x{i}") for i in range(4)]
    variables = [*inputs, tt.constant(np.ones((3, 3)))]

    def choose():
        return variables[random.randint(len(variables))]

    for _ in range(random.randint(4, 24)):
        kind = random.randint(8)
        if kind < 3:
            variables.append(choose() + choose() if kind else choose() * 2)
        elif kind < 5:
            variables.append(choose().T if random.randint(2) else choose()[::-1])
        elif kind == 5:
            variables.append(tt.dot(choose(), choose()))
        elif kind == 6:
            variables.extend(make_sum_and_product()(choose(), choose()))
        else:
            variables.append(
                tt.inc_subtensor(choose()[0], choose()[1], inplace=bool(random.randint(2)))
            )
    outputs = [choose() for _ in range(random.randint(1, 4))] + variables[-1:]
    fgraph = FunctionGraph(inputs, outputs, clone=True)
    for feature in (toolbox.ReplaceValidate(), Supervisor(fgraph.inputs[:1]), *features):
        fgraph.attach_feature(feature)
    try:
        fgraph.attach_feature(DestroyHandler())
        fgraph.validate()
    except InconsistencyError:
        return make_random_graph(seed + 10_000, *features)
    return fgraph


def find_patterns(fgraph):
    """Return each Elemwise's in-place pattern, in topological order."""
    nodes = theano.gof.graph.io_toposort(fgraph.inputs, fgraph.outputs)
    return [dict(node.op.inplace_pattern) for node in nodes if type(node.op) is Elemwise]


@pytest.fixture
def validated(monkeypatch):
    """Return a list; each graph that is validated is appended to it."""
    graphs = []
    validate = DestroyHandler.validate

    def record_graph(self, fgraph):
        graphs.append(fgraph)
        return validate(self, fgraph)

    monkeypatch.setattr(DestroyHandler, "validate", record_graph)
    return graphs


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("feature", [None, toolbox.NoOutputFromInplace])
def test_predictions_equal_separate_validations(seed, feature, validated, monkeypatch):
    """One validation of all changes accepts the same nodes as a validation of each change."""
    fgraph, other = (
        make_random_graph(seed, *[make() for make in [feature] if make]) for _ in range(2)
    )
    del validated[:]
    work_in_place(Elemwise, fgraph)
    assert len(validated) == 1
    monkeypatch.setattr(Waiting, "overwrite", lambda self, node, i: True)
    Changes(Elemwise, other).replace_nodes(other.validate)
    assert find_patterns(fgraph) == find_patterns(other)


def test_random_graphs_have_many_in_place_nodes():
    """The random graphs contain nodes that may work in-place, and nodes that may not."""
    lengths = [
        len(pattern) for seed in range(150) for pattern in find_patterns(make_in_place_graph(seed))
    ]
    assert lengths.count(0) > 100
    assert lengths.count(1) > 200
    assert lengths.count(2) > 30


def make_in_place_graph(seed):
    """Make a random graph, and make nodes in-place where the graph stays valid."""
    fgraph = make_random_graph(seed)
    work_in_place(Elemwise, fgraph)
    return fgraph


def test_a_large_graph_has_as_many_in_place_nodes(monkeypatch):
    result = [find_patterns(make_in_place_graph(seed)) for seed in range(20)]
    monkeypatch.setattr(inplace_elemwise, "LARGE", 0)
    assert [find_patterns(make_in_place_graph(seed)) for seed in range(20)] == result


def test_conflicts_that_were_not_predicted_are_undone(monkeypatch):
    """The result is the same if each change is predicted to be valid."""
    result = [find_patterns(make_in_place_graph(seed)) for seed in range(20)]
    monkeypatch.setattr(Waiting, "overwrite", lambda self, node, i: True)
    assert [find_patterns(make_in_place_graph(seed)) for seed in range(20)] == result


def test_an_overwritten_input_shares_memory_with_no_other():
    x = tt.dmatrix("x")
    y = x * 2
    mode = theano.Mode(linker="py", optimizer="fast_run").excluding("fusion")
    function = theano.function([x], y + y.T, mode=mode)
    assert find_patterns(function.maker.fgraph) == [{}, {}]
    value = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(function(value), 2 * value + 2 * value.T)


def test_fast_cycle_detection_validates_the_graph(monkeypatch):
    monkeypatch.setattr(theano.config, "cycle_detection", "fast")
    for seed in range(20):
        make_in_place_graph(seed).validate()
