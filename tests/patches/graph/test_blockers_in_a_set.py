"""graph/cheap-tries.patch puts the blockers of a graph search into a set.

A blocker is a variable at which the search stops. Without the patch, the search compares each
variable with each blocker.
"""

import theano
from theano import tensor
from theano.gof import graph


class Counted(tensor.TensorVariable):
    """A variable that counts how often such variables are compared."""

    comparisons = 0

    def __eq__(self, other):
        Counted.comparisons += 1
        return self is other

    __hash__ = tensor.TensorVariable.__hash__


def make_chain(length):
    """Return the variables x, 2x, 4x ..., and `length` blockers that are not in the chain."""
    variables = [tensor.dscalar()]
    for _ in range(length):
        variables.append(2 * variables[-1])
    return variables, [Counted(theano.tensor.dscalar) for _ in range(length)]


def test_searches_do_not_compare_each_variable_with_each_blocker():
    variables, blockers = make_chain(100)
    Counted.comparisons = 0
    ancestors = graph.ancestors(variables[-1:], blockers)
    graph.inputs(variables[-1:], blockers)
    graph.variables_and_orphans(blockers, variables[-1:])
    assert set(variables) <= set(ancestors)
    # Without a set, the searches make 30,000 comparisons.
    assert Counted.comparisons < 300


def test_a_search_stops_at_blockers():
    variables, _ = make_chain(10)
    assert variables[4] not in graph.ancestors(variables[-1:], [variables[5]])
    assert variables[5] in graph.ancestors(variables[-1:], [variables[5]])
    assert variables[0] in graph.inputs(variables[-1:])
    assert graph.inputs(variables[-1:], None) == graph.inputs(variables[-1:])
    orphans = graph.variables_and_orphans([variables[5]], variables[-1:])[1]
    assert all(isinstance(orphan, theano.Constant) for orphan in orphans)
