"""Without the patch, each look for a cycle counts the parents of every variable."""

import numpy as np
import pytest
from theano import tensor
from theano.gof import Apply, FunctionGraph, Op
from theano.gof.destroyhandler import _contains_cycle
from theano.gof.graph import io_toposort


class Counted(tensor.TensorVariable):
    """A variable that tells how often it was a key."""

    hashed = 0

    def __hash__(self):
        Counted.hashed += 1
        return object.__hash__(self)


class Step(Op):
    __props__ = ()

    def make_node(self, *inputs):
        return Apply(self, list(inputs), [Counted(tensor.dvector)])


def graph(length):
    """A graph that is a chain, and its nodes in order."""
    first = tensor.dvector()
    variables = [first]
    for _ in range(length):
        variables.append(Step()(variables[-1]))
    fgraph = FunctionGraph([first], variables[-1:], clone=False)
    return fgraph, [variable.owner for variable in variables[1:]]


@pytest.mark.parametrize(
    ("orderings", "found"),
    [
        ({}, False),
        ({3: [0], 2: [1]}, False),
        ({0: [3]}, True),
        ({1: [2]}, True),
        ({2: [2]}, True),
        ({3: [1], 0: [1]}, True),
    ],
)
def test_what_is_a_cycle(orderings, found):
    fgraph, nodes = graph(4)
    waiting = {nodes[one]: [nodes[other] for other in all] for one, all in orderings.items()}
    assert _contains_cycle(fgraph, waiting) is found


def test_two_branches_that_wait_for_each_other():
    x = tensor.dvector()
    left, right = Step()(x), Step()(x)
    fgraph = FunctionGraph([x], [Step()(left), Step()(right)], clone=False)
    top = [output.owner for output in fgraph.outputs]
    assert not _contains_cycle(fgraph, {left.owner: [top[1]]})
    assert _contains_cycle(fgraph, {left.owner: [top[1]], right.owner: [top[0]]})


def test_variables_are_not_counted():
    fgraph, nodes = graph(5000)
    Counted.hashed = 0
    assert not _contains_cycle(fgraph, {nodes[-1]: [nodes[0]]})
    assert Counted.hashed == 0


@pytest.mark.parametrize("seed", range(30))
def test_as_by_sorting(seed):
    """Of any graph and orderings: who waits for itself cannot be sorted."""
    random = np.random.RandomState(seed)
    inputs = [tensor.dvector() for _ in range(2)]
    variables = list(inputs)
    for _ in range(12):
        some = random.randint(len(variables), size=random.randint(1, 3))
        variables.append(Step()(*[variables[i] for i in some]))
    fgraph = FunctionGraph(inputs, variables[-4:], clone=False)
    nodes = fgraph.toposort()
    found = set()
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
        assert _contains_cycle(fgraph, orderings) is expected
        found.add(expected)
    assert found == {False, True}
