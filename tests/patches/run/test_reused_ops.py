"""run/shallow-composites.patch fuses equal groups of nodes into one Composite.

Without the patch, fusion makes Composites for each group of nodes, and generates their C code.
"""

import numpy as np
import pytest
import theano
from theano import scalar
from theano import tensor as tt
from theano.tensor import reused_ops

# Optimize again in each test.
pytestmark = pytest.mark.usefixtures("uncached")


@pytest.fixture
def uncached():
    with theano.change_flags(cache_optimizations=False):
        yield


@pytest.fixture
def composites(record_calls):
    """Return a list; each new Composite is appended to it."""
    return record_calls(scalar.Composite, "__init__")


def list_fused(function):
    """Return the Elemwise nodes of a function that compute arrays."""
    return [
        node
        for node in function.maker.fgraph.toposort()
        if isinstance(node.op, tt.Elemwise) and node.outputs[0].ndim
    ]


def compile_layers(n, mode=None):
    """Compile a training step of n equal layers with RMSProp; return the function."""
    x = tt.dmatrix("x")
    weights = [theano.shared(np.full((3, 3), 0.1 * i), f"w{i}") for i in range(n)]
    hidden = x
    for weight in weights:
        hidden = tt.tanh(tt.dot(hidden, weight) * 2 + 1)
    updates = []
    for weight, slope in zip(weights, tt.grad(hidden.sum(), weights), strict=True):
        square = theano.shared(np.zeros((3, 3)))
        new_square = 0.9 * square + 0.1 * tt.sqr(slope)
        updates += [(square, new_square), (weight, weight - 0.01 * slope / (new_square + 1e-3))]
    return theano.function([x], hidden.sum(), updates=updates, mode=mode)


def test_more_equal_layers_need_no_more_composites(composites):
    counts, nodes = [], []
    for n in (6, 12):
        composites.clear()
        function = compile_layers(n)
        counts.append(len(composites))
        nodes.append(len(list_fused(function)))
        ops = {id(node.op) for node in list_fused(function)}
        assert len(ops) < 10 < nodes[-1]
    assert counts[0] == counts[1]
    assert nodes[0] < nodes[1]


def test_the_graph_and_the_results_are_the_same_without_reuse(monkeypatch):
    value = np.linspace(-1, 1, 6).reshape(2, 3)

    def train():
        function = compile_layers(5)
        graph = theano.printing.debugprint(function, file="str")
        code = [node.op.scalar_op._c_code for node in list_fused(function)]
        return graph, code, [float(function(value)) for _ in range(3)]

    reused = train()
    monkeypatch.setattr(reused_ops, "remember", lambda key, ops, make: make())
    for module in ("elemwise_fusion", "updates_fusion", "inplace_elemwise"):
        monkeypatch.setattr(f"theano.tensor.{module}.remember", lambda key, ops, make: make())
    assert train() == reused


def test_groups_that_differ_get_different_ops():
    """The groups differ in an op, the order of inputs, a dtype, or in which inputs are equal."""
    x, y, z = tt.dvectors("xyz")
    single = tt.fvector("s")
    expressions = [
        *(tt.exp(x) * y + 1, tt.sin(x) * y + 1, y * tt.exp(x) - 1, tt.exp(x) * x + 1),
        *(tt.exp(single) * y + 1, tt.exp(x) * single + 1, tt.exp(x * y) + z, tt.exp(x * x) + z),
        *(tt.exp(x * y) + y, tt.exp(x * y) + x, tt.exp(y * x) + x, tt.sqr(tt.exp(x * y) + x)),
    ]
    # DimShuffles keep the expressions apart.
    outputs = [expression.dimshuffle(0, "x").sum(1) for expression in expressions]
    function = theano.function([x, y, z, single], outputs)
    plain = theano.function([x, y, z, single], outputs, mode=theano.Mode("py", None))
    values = [np.array([0.5, 2.0]), np.array([-1.0, 3.0]), np.array([4.0, 0.25])]
    values.append(np.array([1.5, -0.5], "float32"))
    for result, expected in zip(function(*values), plain(*values), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_a_variable_can_be_several_inputs():
    """The fused nodes have the same inputs as in stock Theano."""
    x, y = tt.dvectors("xy")
    for expression, inputs, value in (
        (tt.exp(x) * x * y * x, [x, x, y], np.e),
        ((x + y) * (x - y) * x, [x, y], 0.0),
        ((tt.exp(x) + x) * (tt.exp(y) + x) * x, [x, y], (np.e + 1) ** 2),
    ):
        function = theano.function([x, y], expression)
        (node,) = list_fused(function)
        assert [v.name for v in node.inputs] == [v.name for v in inputs]
        np.testing.assert_allclose(function([1.0], [1.0]), [value])


def test_the_memo_ends_with_the_pass(composites):
    """The second function gets new Composites, because flags may have changed between passes."""
    x, y = tt.dvectors("xy")
    expression = tt.exp(x) * y + 1
    first = theano.function([x, y], expression)
    n_made = len(composites)
    second = theano.function([x, y], expression)
    assert len(composites) == 2 * n_made > 0
    assert list_fused(first)[0].op is not list_fused(second)[0].op
    assert reused_ops.memo.results is None


def test_the_memo_ends_after_an_error():
    @reused_ops.reuse_ops
    def fail():
        assert reused_ops.memo.results == {}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert reused_ops.memo.results is None
    assert reused_ops.remember("key", [], list) is not reused_ops.remember("key", [], list)


def test_nested_passes_share_the_memo():
    @reused_ops.reuse_ops
    def inner():
        return reused_ops.remember("key", [], list)

    @reused_ops.reuse_ops
    def outer():
        return inner(), inner()

    first, second = outer()
    assert first is second


def test_test_values_belong_to_their_variables():
    with theano.change_flags(compute_test_value="raise", compute_test_value_opt="raise"):
        outputs = []
        for number in (1.0, 2.0):
            x, y = tt.dvectors("xy")
            x.tag.test_value, y.tag.test_value = np.array([number]), np.array([3.0])
            outputs.append((x, y, tt.exp(x) * y + 1))
        function = theano.function(
            [v for x, y, _ in outputs for v in (x, y)], [output for *_, output in outputs]
        )
    values = []
    for node in list_fused(function):
        constant, *test_values = [v.tag.test_value for v in node.op.scalar_op.inputs]
        assert constant == 1.0
        (result,) = [v.tag.test_value for v in node.op.scalar_op.outputs]
        assert np.isclose(result, np.exp(test_values[0]) * test_values[1] + 1)
        values.append(test_values)
    assert sorted(values) == [[1.0, 3.0], [2.0, 3.0]]


def test_an_op_without_c_code_is_not_fused():
    class Doubled(scalar.UnaryScalarOp):
        def impl(self, x):
            return 2 * x

    double = tt.Elemwise(Doubled(scalar.same_out, name="doubled"))
    x, y = tt.dvectors("xy")
    function = theano.function([x, y], [tt.exp(double(x)) * y, double(tt.exp(y)) + x])
    names = [str(node.op) for node in list_fused(function)]
    assert sum("doubled" in name.lower() for name in names) == 2
    assert len(names) == 5
    first, second = function([1.0], [2.0])
    np.testing.assert_allclose(first, [np.exp(2.0) * 2.0])
    np.testing.assert_allclose(second, [2 * np.exp(2.0) + 1])
