"""graph/cheap-tries.patch reduces the overhead of trying an optimizer on a node.

Most tries change nothing. Without the patch, each try hashes the optimizer in Python and compares
the op with seven pairs of inverse functions. Each new Elemwise also makes a node of its scalar op.
"""

import itertools
import pickle

import numpy as np
import pytest
import theano
from theano import scalar
from theano import tensor as tt
from theano.gof import Variable
from theano.gof import opt as gof_opt
from theano.scalar.output_dtypes import find_output_dtypes
from theano.tensor import opt, rewrite_conditions


def make_chain(length):
    """Return a vector, and an expression of it with 2 * length operations."""
    x = tt.dvector("x")
    y = x
    for i in range(length):
        y = tt.sqr(y) + i
    return x, y


def test_a_try_does_not_hash_the_optimizer(monkeypatch):
    """A larger graph adds many tries, but fewer hashes than tries."""
    hashes, tries = [], []
    compute_hash, process = gof_opt.LocalOptimizer.__hash__, gof_opt.NavigatorOptimizer.process_node
    monkeypatch.setattr(
        gof_opt.LocalOptimizer, "__hash__", lambda self: hashes.append(1) or compute_hash(self)
    )
    monkeypatch.setattr(
        gof_opt.NavigatorOptimizer,
        "process_node",
        lambda self, *arguments: tries.append(1) or process(self, *arguments),
    )
    # Try all optimizers, because most nodes meet few conditions.
    monkeypatch.setattr(rewrite_conditions, "find_condition", lambda lopt: None)
    monkeypatch.setattr(rewrite_conditions, "find_op_condition", lambda lopt: None)
    counts = []
    for length in (20, 60):
        hashes.clear()
        tries.clear()
        x, y = make_chain(length)
        theano.function([x], y, mode=theano.Mode("py", "fast_run"))
        counts.append((len(tries), len(hashes)))
    (few_tries, few_hashes), (tries, hashes) = counts
    assert tries - few_tries > 2000
    assert hashes - few_hashes < tries - few_tries


def test_the_profile_contains_the_time_of_each_optimizer():
    x, y = make_chain(10)
    graph = theano.gof.FunctionGraph([x], [tt.log(tt.exp(y))])
    optimizer = theano.compile.optdb.query("+canonicalize", "+specialize")
    with theano.change_flags(profile=True, profile_optimizer=True):
        profile = optimizer.optimize(graph)
    times = []

    def collect_times(part):
        """Collect each EquilibriumOptimizer with the seconds of its local optimizers."""
        if isinstance(part, (tuple, list)):
            if len(part) > 6 and isinstance(part[0], gof_opt.EquilibriumOptimizer):
                times.append((part[0], part[6]))
            for item in part:
                collect_times(item)

    collect_times(profile)
    assert times
    for equilibrium, seconds in times:
        assert set(equilibrium.get_local_optimizers()) <= set(seconds)
    assert sum(sum(seconds.values()) for _, seconds in times) > 0


def test_inverse_functions_cancel(monkeypatch):
    """A function and its inverse cancel. Only functions that have an inverse are compared."""
    x = tt.dvector()
    for function, inverse in ((tt.tanh, tt.arctanh), (tt.arctanh, tt.tanh), (tt.neg, tt.neg)):
        compiled = theano.function([x], inverse(function(x)), mode=theano.Mode("py", "fast_run"))
        names = [str(node.op) for node in compiled.maker.fgraph.toposort()]
        assert names == ["DeepCopyOp"], names
        assert np.array_equal(compiled([0.5, 0.25]), [0.5, 0.25])
    compared = []
    is_pair = opt.is_inverse_pair
    monkeypatch.setattr(opt, "is_inverse_pair", lambda *ops: compared.append(ops) or is_pair(*ops))
    assert not opt.local_func_inv.transform(tt.exp(tt.sqr(x)).owner)
    assert compared == []
    assert opt.local_func_inv.transform(tt.neg(tt.neg(x)).owner) == [x]
    assert compared


def test_an_in_place_composite_shares_the_graph_of_the_original():
    x, y = scalar.float64("x"), scalar.float64("y")
    op = scalar.Composite([x, y], [x * y + scalar.exp(x)])
    op.init_c_code()
    in_place = op.make_new_inplace(scalar.transfer_type(0))
    assert in_place.fgraph is op.fgraph
    assert in_place == op
    assert in_place.output_types_preference == scalar.transfer_type(0)
    assert pickle.loads(pickle.dumps(in_place)) == op


def test_a_try_of_reshape_makes_no_subtensor(monkeypatch):
    """Only a shape that is an input of the graph needs a Subtensor for each of its elements."""
    subtensors = []
    make_node = tt.Subtensor.make_node
    monkeypatch.setattr(
        tt.Subtensor, "make_node", lambda *arguments: subtensors.append(1) or make_node(*arguments)
    )
    x, lengths, n = tt.dmatrix(), tt.lvector(), tt.lscalar()
    rewrite = opt.local_reshape_to_dimshuffle.transform
    for shape, expected in (
        (tt.stack([n, n]), False),
        (tt.constant([2, 1, 3]), True),
        (tt.stack([n, tt.constant(1), n]), True),
        (lengths, False),
    ):
        node = tt.reshape(x, shape, ndim=3 if expected else 2).owner
        subtensors.clear()
        replacements = rewrite(node)
        assert bool(replacements) is expected
        assert bool(subtensors) is (shape is lengths)
        if expected:
            assert replacements[0].type == node.outputs[0].type
            flat = replacements[0].owner.inputs[0].owner
            assert flat.op.ndim == 2


def test_a_failed_optimizer_leaves_no_observer():
    """The observer of new variables is removed although the optimizer raises an exception.

    The product is added to one of its own factors, so an in-place Gemm is impossible.
    """
    x, y = tt.dmatrices("x", "y")
    function = theano.function([x, y], tt.dot(tt.exp(x), y) + tt.exp(x))
    assert any(isinstance(node.op, tt.blas.Gemm) for node in function.maker.fgraph.apply_nodes)
    assert not Variable.construction_observers


def test_an_elemwise_makes_no_node_of_its_scalar_op(monkeypatch):
    x, y = tt.fvector(), tt.lvector()
    monkeypatch.setattr(scalar.Add, "__call__", lambda *_: pytest.fail("called"))
    monkeypatch.setattr(scalar.basic, "Apply", lambda *_: pytest.fail("a node"))
    assert tt.add(x, y).dtype == "float64"


@pytest.mark.parametrize("float_x", ["float32", "float64"])
def test_output_dtypes_equal_the_nodes_dtypes(float_x):
    """find_output_dtypes returns the dtypes of a scalar op's node, or raises the node's error."""
    ops = {op for op in vars(scalar).values() if isinstance(op, scalar.ScalarOp)}
    x, y = scalar.float32("x"), scalar.int8("y")
    ops |= {
        scalar.Composite([x, y], [x * y, x + y]),
        scalar.Add(scalar.transfer_type(1), name="to"),
    }
    dtypes = "bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64"
    compared = set()
    with theano.change_flags(floatX=float_x):
        for op, count in itertools.product(ops, (1, 2, 3)):
            for operands in itertools.product(dtypes, repeat=count):
                try:
                    node = op.make_node(*[scalar.get_scalar_type(dtype)() for dtype in operands])
                except Exception as error:
                    with pytest.raises(type(error)) as raised:
                        find_output_dtypes(op, operands)
                    assert type(raised.value) is type(error)
                else:
                    expected = [output.type.dtype for output in node.outputs]
                    assert find_output_dtypes(op, operands) == expected, (op, operands)
                    compared.add(op)
    assert len(compared) > 90


def make_expressions():
    """Return expressions. Optimizers with a condition in rewrite_conditions change some of them."""
    x, y, z = tt.dmatrix("x"), tt.dmatrix("y"), tt.dvector("z")
    n, b = tt.lscalar("n"), tt.bmatrix("b")
    c = tt.constant(np.full((1, 1), 2.0))
    zeros = tt.zeros_like(x)
    return [
        *(x + 0, x * 1, x * 0, x - x, x / x, x + y - x, x * y / x, 2 * x * 3, tt.neg(tt.neg(x))),
        *(x * zeros, tt.dot(x, zeros), tt.dot(tt.constant(np.zeros((2, 2))), x), 1 - tt.erf(x)),
        *(tt.exp(x) - 1, tt.log(tt.exp(x)), tt.log(tt.nnet.softmax(x)), x / abs(x)),
        *(tt.lt(n, n), tt.maximum(x.shape[0], 0), tt.eq(x.shape[0], -1), tt.eq(x, x)),
        *(
            tt.neq(x, x),
            tt.xor(b, b),
            tt.and_(b, 1),
            tt.or_(b, 0),
            tt.cast(tt.cast(z, "int8"), "int64"),
        ),
        *(tt.switch(1, x, y), tt.switch(n, x, x), tt.fill(x, y) + z, tt.fill(x, 3.0) * y),
        *(tt.alloc(z, n, z.shape[0]) + x, (x / z + y) * z, (x + y) * 2, (x * y) * (x + 1) / y),
        *(tt.exp(x) / tt.exp(x).sum(1, keepdims=True), tt.exp(x) * tt.nnet.sigmoid(-x)),
        *(x * tt.constant(0.0), x + tt.add(n), tt.mul(x), tt.sqr(tt.constant(3.0)) * x),
        *(tt.compile.view_op(x) + 1, tt.grad(tt.tanh(tt.dot(x, y)).sum(), x), 1 + x * -1),
        # Constant operands of sums and products: neutral elements, other dtypes, other dimensions.
        *(
            0.0 + x,
            1.0 * x,
            np.int8(1) * x,
            np.float32(2) * x,
            np.int8(0) + x,
            np.nan * x,
            -0.0 + x,
        ),
        *(tt.constant(np.ones((1, 1))) * x, tt.constant(np.zeros((2, 2))) + x, 2 + n, 0 + n, 1 * b),
        *(tt.constant(np.full((2, 2), 3.0)) * x, 2.0 * x * y, 3.0 + (x + y), x * 3.0, x + 3.0),
        *(tt.mul(c, c, x), tt.add(c, x, c), tt.mul(c, x), tt.add(c, x), tt.mul(x), tt.add(c, c)),
        *(n - n, x - y, x - 2.0, 2.0 - x, (x + y) - x, tt.neg(x) - y, x - x.dimshuffle(0, 1)),
        *(tt.neg(x - y), tt.neg(tt.constant(2.0)) * x, tt.inv(x) * x, tt.inv(tt.inv(x)), x / 1.0),
        # Sums as factors of products, also below a negation or a dimshuffle.
        *((x + y) * z / x, (z + 1.0) * x / (z + 1.0), x / (y / x + 1.0), (x / z + y / z) * z * 2.0),
        *((z / 2.0 + z).dimshuffle("x", 0) * x, (x / y - y) * -y, -(x / y + x) * y),
        # Switches, exponentials, absolute values, squares, increments.
        *(
            tt.switch(n, x, y) + tt.switch(n, y, x),
            tt.switch(n, 0.0, x) * y,
            x * x,
            tt.mul(x, x, x),
        ),
        *(
            tt.exp(-x) * tt.nnet.sigmoid(x),
            y * (x * tt.exp(x)) * tt.nnet.sigmoid(-x),
            tt.exp(z) - 1.0,
        ),
        *(abs(x) * abs(y), abs(x) / abs(y), abs(x) * 2.0, tt.exp(tt.alloc(z, n, z.shape[0]))),
        *(
            tt.grad((x[0] * x[1] * x[2]).sum(), x),
            x + tt.inc_subtensor(x[0], z),
            1 + tt.cast(n, "int8"),
        ),
        *(
            1 - tt.erf(x),
            1 + tt.neg(tt.erf(x)),
            1 + -1 * tt.erf(x),
            x * tt.fill(y, 0.0),
            x + tt.fill(y, 0),
        ),
    ]


@pytest.mark.parametrize(
    "query", [("ShapeOpt", "canonicalize", "stabilize", "specialize"), ("useless",), ("fast_run",)]
)
def test_optimizers_change_no_node_that_fails_their_conditions(monkeypatch, query):
    """An optimizer changes no node for which its condition in rewrite_conditions is false."""
    find_for_op, find = rewrite_conditions.find_op_condition, rewrite_conditions.find_condition
    skipped, changed = set(), set()

    def check_skipped(lopt, node):
        """Check that the optimizer does not change the node; return False to skip it."""
        skipped.add(lopt)
        assert lopt.transform(node) in (None, False), (lopt, node)
        return False

    def find_condition(lopt):
        for_op = find_for_op(lopt) or (lambda op: True)
        condition = find(lopt) or (lambda node: True)
        return lambda node: (for_op(node.op) and condition(node)) or check_skipped(lopt, node)

    monkeypatch.setattr(rewrite_conditions, "find_op_condition", lambda lopt: None)
    monkeypatch.setattr(rewrite_conditions, "find_condition", find_condition)
    process = gof_opt.NavigatorOptimizer.process_node

    def process_node(self, fgraph, node, lopt=None):
        is_changed = process(self, fgraph, node, lopt)
        if is_changed:
            changed.add(lopt)
        return is_changed

    monkeypatch.setattr(gof_opt.NavigatorOptimizer, "process_node", process_node)
    mode = theano.Mode("py", theano.gof.Query(include=query))
    for expression in make_expressions():
        inputs = [v for v in theano.gof.graph.inputs([expression]) if v.name]
        with theano.change_flags(cache_optimizations=False):
            theano.function(inputs, expression, mode=mode)
    conditional = {*rewrite_conditions.SCALAR_OPS, opt.local_view_op, opt.local_track_shape_i}
    if "fast_run" in query:
        assert {*rewrite_conditions.CONDITIONS, *rewrite_conditions.OPS} <= skipped
        assert gof_opt.LocalOptGroup in map(type, skipped)
    if "canonicalize" in query:
        assert conditional <= skipped
        assert len(changed & {*conditional, *rewrite_conditions.CONDITIONS}) > 8
        assert {opt.local_add_canonizer, opt.local_mul_canonizer} <= skipped & changed
