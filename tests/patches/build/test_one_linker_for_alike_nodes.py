"""build/modules-are-cached.patch shares one linker between nodes that need the same module.

Without the patch, each node has its own linker, which computes the module's key again.
"""

import numpy as np
import pytest
import theano
import theano.tensor as tt
from theano.gof.cc import CLinker


@pytest.fixture
def keyed_nodes(monkeypatch):
    """Return a list; each node for which a key is computed is appended to it."""
    nodes = []
    compute = CLinker.cmodule_key_

    def record_nodes(self, fgraph, *args, **kwargs):
        nodes.extend(fgraph.toposort())
        return compute(self, fgraph, *args, **kwargs)

    monkeypatch.setattr(CLinker, "cmodule_key_", record_nodes)
    return nodes


def test_equal_nodes_compute_one_key(keyed_nodes):
    inputs = [tt.dmatrix() for _ in range(6)]
    # The environment ships no loops of cosh.
    function = theano.function(inputs, [tt.cosh(variable) for variable in inputs])
    assert len(keyed_nodes) == 1
    values = [np.full((2, 2), float(number)) for number in range(6)]
    assert np.allclose(function(*values), np.cosh(values))


def test_equal_nodes_have_one_linker(record_calls):
    """The number of linkers does not depend on the number of equal nodes."""
    linkers = record_calls(CLinker, "accept")
    counts = []
    for n in (3, 9):
        linkers.clear()
        inputs = [tt.dmatrix() for _ in range(n)]
        function = theano.function(inputs, [tt.exp(variable).sum() for variable in inputs])
        counts.append(len(linkers))
        values = [np.full((2, 2), float(number)) for number in range(n)]
        for result, value in zip(function(*values), values, strict=True):
            assert np.isclose(result, np.exp(value).sum())
    assert counts[0] == counts[1]


class Scaled(theano.Op):
    """An op that multiplies by a parameter of the node, so equal ops may have different factors."""

    __props__ = ()
    params_type = theano.gof.ParamsType(factor=theano.scalar.float64)

    def make_node(self, x, factor):
        node = theano.Apply(self, [x], [x.type()])
        node.tag.factor = factor
        return node

    def get_params(self, node):
        return self.params_type.get_params(self, factor=node.tag.factor)

    def c_code_cache_version(self):
        return (1,)

    def c_code(self, node, name, inputs, outputs, sub):
        return f"""
        Py_XDECREF({outputs[0]});
        {outputs[0]} = (PyArrayObject *)PyArray_NewLikeArray({inputs[0]}, NPY_KEEPORDER, NULL, 0);
        if (!{outputs[0]}) {sub["fail"]}
        *(double *)PyArray_DATA({outputs[0]}) = *(double *)PyArray_DATA({inputs[0]}) *
                                                {sub["params"]}->factor;
        """


def test_nodes_with_equal_ops_use_their_own_parameters():
    x = tt.dscalar()
    outputs = [Scaled()(x, 2.0), Scaled()(x, 3.0), Scaled()(x, 2.0)]
    mode = theano.Mode("cvm", None)
    assert theano.function([x], outputs, mode=mode)(5.0) == [10.0, 15.0, 10.0]


def test_precompiled_thunks_need_no_parameters(record_calls):
    """The thunk of a DimShuffle does not read the node's params, so they are computed once."""
    computed = record_calls(tt.DimShuffle, "get_params")
    counts = []
    for n in (3, 9):
        computed.clear()
        inputs = [tt.dmatrix() for _ in range(n)]
        function = theano.function(inputs, [tt.exp(variable).T for variable in inputs])
        assert any(isinstance(node.op, tt.DimShuffle) for node in function.maker.fgraph.apply_nodes)
        counts.append(len(computed))
        values = [np.arange(6.0).reshape(2, 3) + number for number in range(n)]
        for result, value in zip(function(*values), values, strict=True):
            np.testing.assert_allclose(result, np.exp(value).T)
    assert counts[0] == counts[1]


def test_different_nodes_have_their_own_modules(keyed_nodes):
    x, y, z = tt.dvector(), tt.dvector(), tt.fvector()
    outputs = [x * y, x * x, x * z, z * z, x + y, x * 2, x * 3, 2 * x, y * 3]
    mode = (
        theano.compile.get_default_mode()
        .including("fast_run")
        .excluding("canonicalize", "specialize", "fusion", "inplace")
    )
    function = theano.function([x, y, z], outputs, mode=mode)
    assert len(keyed_nodes) < len(function.maker.fgraph.apply_nodes)
    values = np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([5.0, 6.0], dtype="float32")
    arguments = dict(zip((x, y, z), values, strict=True))
    expected = [
        arguments[x] * arguments[y],
        arguments[x] ** 2,
        arguments[x] * arguments[z],
        arguments[z] ** 2,
        arguments[x] + arguments[y],
        arguments[x] * 2,
        arguments[x] * 3,
        arguments[x] * 2,
        arguments[y] * 3,
    ]
    for result, value in zip(function(*values), expected, strict=True):
        assert result.tolist() == value.tolist()


class Unhashable(theano.gof.Type):
    """A user's type without a hash."""

    def __eq__(self, other):
        return type(self) is type(other)

    __hash__ = None

    def filter(self, value, strict=False, allow_downcast=None):
        return value


class ReturnText(theano.Op):
    """An op without inputs whose output is a string."""

    __props__ = ()

    def make_node(self):
        return theano.Apply(self, [], [Unhashable()()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = "something"


def test_types_without_a_hash_are_supported():
    # Theano copies the output by an op that has C code for other types.
    assert theano.function([], ReturnText()())() == "something"


def test_nodes_that_differ_in_their_inputs_have_correct_results(keyed_nodes):
    """Inputs may be repeated, swapped or constant, or have other broadcast patterns."""
    x, y = tt.dvectors("x", "y")
    one, other = (tt.constant(np.array([1.0, 2.0])) for _ in range(2))
    row = tt.constant(np.array([3.0]))
    op = tt.Elemwise(theano.scalar.sub)
    pairs = [(x, y), (y, x), (x, x), (x, one), (y, one), (y, other), (one, x), (x, row), (row, y)]
    mode = theano.Mode("cvm", None)
    function = theano.function([x, y], [op(*pair) for pair in pairs], mode=mode)
    assert len(keyed_nodes) < len(pairs)
    values = {x: np.array([5.0, 7.0]), y: np.array([11.0, 13.0])}
    values.update((constant, constant.data) for constant in (one, other, row))
    for result, (first, second) in zip(function(values[x], values[y]), pairs, strict=True):
        assert result.tolist() == (values[first] - values[second]).tolist()
