"""graph/order-kept.patch sorts a graph again only after a change.

Without the patch, each optimizer that walks a graph sorts it first.
"""

import pickle
from collections import OrderedDict

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.gof import FunctionGraph, cutils_ext, graph, opt
from theano.gof.fg import MissingInputError


@pytest.fixture
def sorts(monkeypatch):
    """Return a list; the outputs of each graph that is sorted are appended to it."""
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


def sort_again(fgraph):
    return graph.io_toposort(fgraph.inputs, fgraph.outputs)


def test_optimizers_reuse_the_order(fgraph, sorts):
    first = fgraph.toposort()
    assert first == sort_again(fgraph)
    sorts.clear()
    seen = []
    nothing = opt.local_optimizer(None)(seen.append)
    for order in ("in_to_out", "out_to_in"):
        opt.TopoOptimizer(nothing, order=order).apply(fgraph)
    opt.EquilibriumOptimizer([nothing], max_use_ratio=10).apply(fgraph)
    assert set(seen) == set(first)
    assert fgraph.toposort() == first
    assert not sorts


def test_each_caller_gets_its_own_list(fgraph):
    """A caller that changes its list does not change other callers' lists."""
    fgraph.toposort().clear()
    assert fgraph.toposort() == sort_again(fgraph)


def test_changes_invalidate_the_order(fgraph):
    """The order is correct after an input or output is changed, and after the change is undone."""
    order = fgraph.toposort()
    adding, before = fgraph.outputs[0].owner, fgraph.outputs[1]
    fgraph.change_input(adding, 0, tt.tanh(fgraph.inputs[0]))
    assert fgraph.toposort() == sort_again(fgraph) != order
    order = fgraph.toposort()
    fgraph.change_input("output", 1, tt.cosh(fgraph.inputs[0]))
    assert fgraph.toposort() == sort_again(fgraph) != order
    fgraph.change_input("output", 1, before)
    assert fgraph.toposort() == sort_again(fgraph)
    fgraph.add_input(tt.matrix("y"))
    assert fgraph.toposort() == sort_again(fgraph)


def test_orderings_are_requested_each_time(fgraph):
    """If the orderings of a feature change, the order changes, although the graph does not."""
    order = fgraph.toposort()
    first, second = (output.owner for output in fgraph.outputs)

    class Later(theano.gof.toolbox.Feature):
        def orderings(self, fgraph):
            return OrderedDict([(self.node, [first if self.node is second else second])])

    later = Later()
    fgraph.attach_feature(later)
    for later.node in (first, second):
        assert fgraph.toposort()[-1] is later.node
    fgraph.remove_feature(later)
    assert fgraph.toposort() == order


def test_a_pickle_does_not_contain_the_order(fgraph):
    fgraph.toposort()
    loaded = pickle.loads(pickle.dumps(fgraph))
    assert loaded.sorted_nodes is None
    assert loaded.toposort() == sort_again(loaded)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_correct_after_random_changes(seed):
    """The order of a graph and of its copy is correct after each change, and after undoing it."""
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
        assert fgraph.toposort() == sort_again(fgraph)
        if random.randint(2):
            fgraph.revert(before)
            assert set(fgraph.toposort()) == set(order)
        assert fgraph.toposort() == sort_again(fgraph)
        copy = fgraph.clone()
        assert copy.toposort() == sort_again(copy)


def sort_in_python(inputs, outputs):
    """Sort nodes as io_toposort of Theano 1.0.5 does."""
    inputs, computed, order = set(inputs), set(), []
    todo = [output.owner for output in reversed(outputs) if output.owner]
    while todo:
        node = todo.pop()
        if node.outputs[0] in computed or node.outputs[0] in inputs:
            continue
        missing = [
            x.owner
            for x in node.inputs
            if x.owner is not None and x not in computed and x not in inputs
        ]
        if missing:
            todo += [node, *missing]
        else:
            computed.update(node.outputs)
            order.append(node)
    return order


class Several(theano.Op):
    """An op of one to three outputs."""

    __props__ = ("count",)

    def __init__(self, count):
        self.count = count

    def make_node(self, *inputs):
        return theano.Apply(self, list(inputs), [tt.dvector() for _ in range(self.count)])


@pytest.mark.parametrize("seed", range(20))
def test_the_order_equals_the_order_of_python_code(seed):
    """Some inputs of the graph are outputs of nodes, and some inputs of nodes are constants."""
    random = np.random.RandomState(seed)
    variables = [tt.dvector(), tt.dvector(), tt.constant([1.0])]
    for _ in range(60):
        operands = [variables[i] for i in random.randint(len(variables), size=random.randint(5))]
        variables += Several(random.randint(1, 4))(*operands, return_list=True)
    nodes = [x.owner for x in variables if x.owner]
    inputs = variables[:2]
    for i in random.randint(len(nodes), size=3):
        inputs += nodes[i].outputs
    outputs = [variables[i] for i in random.randint(len(variables), size=6)]
    expected = sort_in_python(inputs, outputs)
    assert graph.io_toposort(inputs, outputs) == expected
    assert graph.io_toposort(set(inputs), outputs) == expected


def test_an_object_without_nodes_is_an_error():
    with pytest.raises(AttributeError, match="owner"):
        graph.io_toposort([], [3])


def test_a_constant_has_no_owner():
    constant = tt.constant(2.0)
    assert constant.owner is None
    with pytest.raises(ValueError, match="owner"):
        constant.owner = tt.exp(tt.dvector()).owner


def sort_slowly(inputs, outputs):
    """Return the order that the recursive definition of cutils_ext.sort_nodes gives."""
    order = []

    def visit(node):
        if node in order or node.outputs[0] in inputs:
            return
        # The last input is visited first.
        for variable in reversed(node.inputs):
            if variable.owner and variable not in inputs:
                visit(variable.owner)
        order.append(node)

    for variable in outputs:
        if variable.owner:
            visit(variable.owner)
    return order


@pytest.mark.parametrize("seed", range(20))
def test_c_code_sorts_as_the_recursive_definition(seed):
    random = np.random.RandomState(seed)
    variables = [tt.scalar() for _ in range(3)] + [tt.constant(2.0)]
    for _ in range(60):
        operands = [variables[i] for i in random.randint(0, len(variables), random.randint(1, 4))]
        variables.append(tt.add(*operands))
    outputs = [variables[i] for i in random.randint(0, len(variables), 5)]
    # Some inputs are computed by nodes, where the sort stops.
    inputs = {*variables[:3], *(variables[i] for i in random.randint(4, len(variables), seed % 3))}
    assert cutils_ext.sort_nodes(inputs, outputs) == sort_slowly(inputs, outputs)


def test_a_sort_of_wrong_objects_raises_an_error():
    x = tt.scalar()
    with pytest.raises(TypeError):
        cutils_ext.sort_nodes([x], [x + 1])
    with pytest.raises(AttributeError, match="owner"):
        cutils_ext.sort_nodes({x}, [x + 1, 1])


def test_a_client_is_removed_without_comparing_nodes():
    class Incomparable:
        __hash__ = None

        def __eq__(self, other):
            raise AssertionError("compared")

    nodes = [Incomparable() for _ in range(3)]
    clients = [(nodes[0], 0), (nodes[1], 0), ("output", 1), (nodes[1], 300), (nodes[2], 0)]
    cutils_ext.remove_client(clients, (nodes[1], int("300")))
    assert [(id(node), i) for node, i in clients] == [
        (id(node), i) for node, i in [(nodes[0], 0), (nodes[1], 0), ("output", 1), (nodes[2], 0)]
    ]
    numbers = [("a", 1), ("output", 0), ("output", 0)]
    # Another string with the same characters is equal.
    cutils_ext.remove_client(numbers, ("".join(["out", "put"]), 0))
    assert numbers == [("a", 1), ("output", 0)]
    with pytest.raises(ValueError, match="not in list"):
        cutils_ext.remove_client(numbers, ("a", 2))
    with pytest.raises(TypeError):
        cutils_ext.remove_client(numbers, "ab")


def test_the_list_of_inputs_is_not_searched_for_each_node():
    """Nodes that read an input add no searches of the list of inputs."""

    class List(list):
        searches = 0

        def __contains__(self, item):
            List.searches += 1
            return super().__contains__(item)

    x = tt.vector("x")
    counts = []
    for n in (2, 20):
        fgraph = FunctionGraph([x], [tt.exp(x)])
        fgraph.inputs = List(fgraph.inputs)
        List.searches = 0
        for _ in range(n):
            fgraph.change_input("output", 0, tt.exp(fgraph.inputs[0]))
        counts.append(List.searches)
    assert counts[0] == counts[1]
    y = tt.vector("y")
    with pytest.raises(MissingInputError, match="Undeclared input"):
        fgraph.change_input("output", 0, y)
    with pytest.raises(MissingInputError, match="was not provided"):
        fgraph.change_input("output", 0, y + x)
