"""graph/deep-graphs.patch handles graphs that are deeper than Python's stack.

Without the patch, gradients and the copies for compilation raise RecursionError.
"""

import sys

import numpy as np
import pytest
import theano
from theano import tensor


@pytest.fixture
def layers():
    """Return the input, weights and output of a network that is deeper than Python's stack."""
    x = hidden = tensor.dmatrix()
    weights = [theano.shared(np.eye(2)) for _ in range(sys.getrecursionlimit() // 2)]
    for weight in weights:
        hidden = tensor.tanh(tensor.dot(hidden, weight))
    return x, weights, hidden


def test_gradients_of_deep_graphs_can_be_made(layers):
    x, weights, hidden = layers
    slopes = theano.grad(hidden.sum(), [x, *weights])
    assert [slope.type for slope in slopes] == [variable.type for variable in (x, *weights)]


def test_rop_of_a_deep_graph_can_be_made(layers):
    x, _, hidden = layers
    assert theano.tensor.Rop(hidden, x, x).type == x.type


def test_functions_of_deep_graphs_can_be_compiled(layers):
    x, weights, hidden = layers
    f = theano.function([x], hidden, mode=theano.Mode("py", None))
    expected = np.eye(2)
    for _ in weights:
        expected = np.tanh(expected)
    np.testing.assert_allclose(f(np.eye(2)), expected)


def test_gradients_are_computed_in_the_order_of_recursion():
    """theano.grad calls the ops' grad methods in the order of stock Theano's recursive function."""
    names = []

    class Step(theano.Op):
        __props__ = ("name",)

        def __init__(self, name):
            self.name = name

        def make_node(self, *inputs):
            return theano.Apply(self, list(inputs), [tensor.dscalar(), tensor.dscalar()])

        def grad(self, inputs, slopes):
            names.append(self.name)
            return [slopes[0]] * len(inputs)

    x, y = tensor.dscalars("xy")
    a, b = Step("a")(x, y)
    c, _ = Step("c")(a, x)
    d, _ = Step("d")(b, c)
    e, _ = Step("e")(a, y)
    theano.grad(d + e, [x, y])
    assert names == ["d", "c", "e", "a"]


def test_a_trace_has_the_programs_line(layers):
    x, _, hidden = layers
    slope = theano.grad(hidden.sum(), x)
    assert any(frame[0] == __file__ for frame in slope.tag.trace[-1])


class List(list):
    """A list that counts its searches."""

    searches = 0

    def __contains__(self, item):
        List.searches += 1
        return super().__contains__(item)


@pytest.mark.parametrize("linker", ["cvm", "vm"])
def test_linkers_rarely_search_the_outputs(monkeypatch, linker):
    """The linker searches the list of outputs once per variable, or never."""
    make_all = theano.gof.vm.VM_Linker.make_all

    def count(self, *args, **kwargs):
        self.fgraph.outputs = List(self.fgraph.outputs)
        List.searches = 0
        return make_all(self, *args, **kwargs)

    monkeypatch.setattr(theano.gof.vm.VM_Linker, "make_all", count)
    x = tensor.dmatrix()
    outputs = [tensor.exp(x) * i + tensor.exp(x) for i in range(2, 12)]
    function = theano.function([x], outputs, mode=theano.Mode(linker, "merge"))
    n_variables = len(function.maker.fgraph.variables)
    assert List.searches <= (0 if linker == "cvm" else n_variables)
    expected = [np.exp(np.eye(2)) * (i + 1) for i in range(2, 12)]
    np.testing.assert_allclose(function(np.eye(2)), expected)


def test_scalars_get_the_memory_of_earlier_scalars_of_their_type():
    # Not at the top, because Theano without a patch lacks this module.
    from theano.gof.memory_use import ScalarOutputs  # noqa: PLC0415

    x, i = tensor.dscalar(), tensor.lscalar()
    vector = tensor.stack([x, x])
    outputs = [x + 1, i + 1, vector + 1, x + 2, x + 3]
    scalars = ScalarOutputs([output.owner for output in outputs])
    assert scalars.take(x.type, 0) is outputs[3]
    assert scalars.take(vector.type, 1) is None
    assert scalars.take(i.type, 1) is None
    assert scalars.take(x.type, 2) is outputs[4]
    assert scalars.take(x.type, 2) is None
