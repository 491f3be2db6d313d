"""graph/cycles-depth-first.patch detects cycles depth-first, and tracks destroyed variables.

Without the patch, each search for a cycle counts the parents of all variables. Each validation
searches the whole graph. Theano collects the destroyed variables again after each change.
"""

import functools

import numpy as np
import pytest
from theano import tensor
from theano.compile.function_module import Supervisor
from theano.gof import (
    Apply,
    DestroyHandler,
    FunctionGraph,
    InconsistencyError,
    Op,
    destroy_tracker,
    toolbox,
)
from theano.gof.destroy_tracker import DestroyTracker, contains_cycle
from theano.gof.graph import io_toposort


class Counted(tensor.TensorVariable):
    """A variable that counts how often it is hashed."""

    hashed = 0

    def __hash__(self):
        Counted.hashed += 1
        return object.__hash__(self)


class Step(Op):
    """An op that is neither in-place nor a view."""

    __props__ = ()

    def make_node(self, *inputs):
        return Apply(self, list(inputs), [Counted(tensor.dvector)])


def make_chain(length):
    """Return a graph that is a chain of nodes, and its nodes in order."""
    first = tensor.dvector()
    variables = [first]
    for _ in range(length):
        variables.append(Step()(variables[-1]))
    fgraph = FunctionGraph([first], variables[-1:], clone=False)
    return fgraph, [variable.owner for variable in variables[1:]]


def make_random_graph(random, count, least, op):
    """Make a graph of twelve nodes.

    Args:
        random: the random number generator.
        count: the number of the graph's inputs.
        least: the smallest number of inputs of a node; the largest is two.
        op: a function that returns the op of the next node.
    """
    inputs = [tensor.dvector() for _ in range(count)]
    variables = list(inputs)
    for _ in range(12):
        indices = random.randint(len(variables), size=random.randint(least, 3))
        variables.append(op()(*[variables[i] for i in indices]))
    return FunctionGraph(inputs, variables[-4:], clone=False)


def change_randomly(fgraph, random, op):
    """Change a random node of two inputs, in a graph of three inputs.

    The node gets the op that op() returns, or one of its inputs becomes an input of the graph.
    """
    nodes = io_toposort(fgraph.inputs, fgraph.outputs)
    node = nodes[random.randint(len(nodes))]
    if random.randint(2):
        fgraph.replace(node.outputs[0], op()(*node.inputs))
    else:
        fgraph.change_input(node, random.randint(2), fgraph.inputs[random.randint(3)])


@pytest.mark.parametrize(
    ("orderings", "cyclic"),
    [
        ({}, False),
        ({3: [0], 2: [1]}, False),
        ({0: [3]}, True),
        ({1: [2]}, True),
        ({2: [2]}, True),
        ({3: [1], 0: [1]}, True),
    ],
)
def test_orderings_can_close_a_cycle(orderings, cyclic):
    """`orderings` maps a node's position in a chain to the positions that must run before it."""
    fgraph, nodes = make_chain(4)
    waits = {nodes[i]: [nodes[j] for j in earlier] for i, earlier in orderings.items()}
    assert contains_cycle(fgraph, waits, {}) is cyclic


def test_two_branches_that_wait_for_each_other_are_a_cycle():
    x = tensor.dvector()
    left, right = Step()(x), Step()(x)
    fgraph = FunctionGraph([x], [Step()(left), Step()(right)], clone=False)
    top = [output.owner for output in fgraph.outputs]
    assert not contains_cycle(fgraph, {left.owner: [top[1]]}, {})
    assert contains_cycle(fgraph, {left.owner: [top[1]], right.owner: [top[0]]}, {})


def test_the_search_for_a_cycle_hashes_no_variable():
    fgraph, nodes = make_chain(5000)
    Counted.hashed = 0
    assert not contains_cycle(fgraph, {nodes[-1]: [nodes[0]]}, {})
    assert Counted.hashed == 0


@pytest.mark.parametrize("seed", range(30))
def test_a_graph_with_a_cycle_cannot_be_sorted(seed):
    """A graph with orderings has a cycle if and only if it cannot be sorted."""
    random = np.random.RandomState(seed)
    fgraph = make_random_graph(random, 2, 1, Step)
    nodes = fgraph.toposort()
    outcomes, parents = set(), {}
    for _ in range(40):
        pairs = random.randint(len(nodes), size=(random.randint(1, 5), 2))
        orderings = {nodes[i]: [] for i, _ in pairs}
        for i, j in pairs:
            orderings[nodes[i]].append(nodes[j])
        try:
            io_toposort(fgraph.inputs, fgraph.outputs, orderings)
            expected = False
        except ValueError:
            expected = True
        assert contains_cycle(fgraph, orderings, parents) is expected
        outcomes.add(expected)
    assert outcomes == {False, True}


class InPlace(Op):
    """An op that destroys its first input, returns a view of it, or does neither."""

    __props__ = ("destroys", "views")

    def __init__(self, destroys=False, views=False):
        self.destroys, self.views = destroys, views
        if destroys:
            self.destroy_map = {0: [0]}
        if views:
            self.view_map = {0: [0]}

    def make_node(self, *inputs):
        return Apply(self, list(inputs), [tensor.dvector()])


def call_or_message(refresh):
    """Call a function; return its result, or the message if it finds the graph inconsistent."""
    try:
        return refresh()
    except InconsistencyError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(40))
def test_destroyed_variables_stay_up_to_date(seed):
    """After random changes of a graph, the record of destroyed variables equals a new record.

    Some nodes destroy the same variable.
    """
    random = np.random.RandomState(seed)
    ops = InPlace(), InPlace(views=True), InPlace(destroys=True)

    def op():
        return ops[random.randint(3)]

    fgraph = make_random_graph(random, 3, 2, op)
    fgraph.attach_feature(DestroyHandler())
    consistent = 0
    for _ in range(60):
        change_randomly(fgraph, random, op)
        if random.randint(3):
            recomputed = call_or_message(DestroyTracker(fgraph.destroy_handler).refresh)
            assert call_or_message(fgraph.destroy_handler.refresh_droot_impact) == recomputed
            consistent += not isinstance(recomputed, str)
    assert consistent


@pytest.mark.parametrize("seed", range(10))
def test_parents_stay_up_to_date(seed):
    """After random changes of a graph, the record of each node's parents is correct."""
    random = np.random.RandomState(seed)
    fgraph = make_random_graph(random, 3, 2, Step)
    fgraph.attach_feature(DestroyHandler())
    parents = fgraph.destroy_handler.destroy_tracker.parents
    for _ in range(40):
        change_randomly(fgraph, random, Step)
        assert not contains_cycle(fgraph, {}, parents)
        assert parents == {
            node: [variable.owner for variable in node.inputs if variable.owner is not None]
            for node in fgraph.apply_nodes
        }


def test_a_change_that_destroys_nothing_keeps_the_record(monkeypatch):
    x = tensor.dvector()
    fgraph = FunctionGraph([x], [InPlace(destroys=True)(Step()(Step()(x)))], clone=False)
    fgraph.attach_feature(DestroyHandler())
    assert len(fgraph.destroy_handler.refresh_droot_impact()[2]) == 1
    monkeypatch.setattr(DestroyTracker, "_add", lambda *_: pytest.fail("collected again"))
    first = fgraph.toposort()[0]
    fgraph.replace(first.outputs[0], InPlace(views=True)(x))
    assert len(fgraph.destroy_handler.refresh_droot_impact()[2]) == 1


def can_be_sorted(fgraph):
    """Return whether a graph can be sorted with the orderings of a new DestroyTracker."""
    handler = fgraph.destroy_handler
    tracker, handler.destroy_tracker = handler.destroy_tracker, DestroyTracker(handler)
    try:
        io_toposort(fgraph.inputs, fgraph.outputs, handler.orderings(fgraph))
    except (InconsistencyError, ValueError):
        return False
    finally:
        handler.destroy_tracker = tracker
    return True


def passes_validation(fgraph):
    """Return whether a graph passes its validation."""
    return not isinstance(call_or_message(fgraph.validate), str)


def test_a_graph_is_valid_if_it_can_be_sorted():
    """After random changes, a graph passes its validation if and only if it can be sorted.

    The test undoes some changes. It keeps some invalid graphs, which later changes make valid.
    """
    ops = *[InPlace()] * 6, InPlace(views=True), InPlace(destroys=True)
    answers = []
    for seed in range(20):
        random = np.random.RandomState(seed)
        op = functools.partial(random.choice, ops)
        fgraph = make_random_graph(random, 3, 2, op)
        fgraph.attach_feature(toolbox.ReplaceValidate())
        fgraph.attach_feature(DestroyHandler())
        for _ in range(60):
            start = fgraph.checkpoint()
            change_randomly(fgraph, random, op)
            valid = can_be_sorted(fgraph)
            if random.randint(3):
                answers.append(valid)
                assert passes_validation(fgraph) is valid
            if random.randint(4) < 3 * (not valid) + 1:
                fgraph.revert(start)
    assert min(answers.count(valid) for valid in (False, True)) > 100


def test_one_more_node_in_place_needs_no_search(monkeypatch):
    """Making another node of a chain in-place causes no search for a cycle.

    The first node must not become in-place, because the output also reads its input.
    """
    x = tensor.dvector()
    variables = [Step()(x)]
    for _ in range(50):
        variables.append(Step()(Step()(variables[-1])))
    late = Step()(variables[-1])
    fgraph = FunctionGraph([x], [Step()(variables[0], late)], clone=False)
    fgraph.attach_feature(toolbox.ReplaceValidate())
    fgraph.attach_feature(DestroyHandler())
    last = fgraph.outputs[0].owner.inputs[1].owner
    first = next(node for node in fgraph.toposort() if node.inputs[0] is variables[0])
    fgraph.replace_validate(last.outputs[0], InPlace(destroys=True)(*last.inputs))
    searches = []
    search = destroy_tracker.contains_cycle
    monkeypatch.setattr(
        destroy_tracker,
        "contains_cycle",
        lambda *arguments: searches.append(1) or search(*arguments),
    )
    for node in fgraph.toposort()[2:-2]:
        fgraph.replace_validate(node.outputs[0], InPlace(destroys=True)(*node.inputs))
    assert searches == []
    with pytest.raises(InconsistencyError, match="cycles"):
        fgraph.replace_validate(first.outputs[0], InPlace(destroys=True)(*first.inputs))
    assert searches == [1]


def test_protected_variables_are_not_destroyed():
    for position in range(2):
        x = tensor.dvector()
        y = Step()(x)
        view = InPlace(views=True)((x, y)[position])
        fgraph = FunctionGraph([x], [y, InPlace()(view)], clone=False)
        fgraph.attach_feature(toolbox.ReplaceValidate())
        fgraph.attach_feature(DestroyHandler())
        fgraph.attach_feature(Supervisor([x]))
        last = fgraph.outputs[1].owner
        with pytest.raises(InconsistencyError, match="protected"):
            fgraph.replace_validate(last.outputs[0], InPlace(destroys=True)(*last.inputs))
