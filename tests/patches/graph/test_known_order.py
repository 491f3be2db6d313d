"""graph/known-order.patch removes comparisons of integers whose result is the same for all shapes.

Without the patch, Theano infers only that a shape, or a sum of shapes, is not negative. The bounds
of a slice of a slice are chains of comparisons. The patch must not simplify sums that may overflow.
"""

import operator

import numpy as np
import pytest
import theano
from theano import scalar
from theano import tensor as tt
from theano.scan_module.scan_utils import equal_computations
from theano.tensor.elemwise import Elemwise
from theano.tensor.order import Order
from theano.tensor.order.length_tables import LengthTables

# NumPy warns of casts that overflow, which the random expressions contain.
pytestmark = pytest.mark.filterwarnings("ignore:NumPy will stop allowing:DeprecationWarning")

PYTHON = theano.Mode("py", None)
SIMPLER = theano.Mode("py", "fast_run").excluding("fusion")
MATRIX = tt.matrix("matrix")
SHAPES = (MATRIX.shape[0], MATRIX.shape[1])
ANY = tt.lscalar("any")
SMALL = tt.bscalar("small")
UNSIGNED = tt.scalar("unsigned", "uint8")
INPUTS = (MATRIX, ANY, SMALL, UNSIGNED)
ARITHMETIC = (operator.add, operator.sub, operator.mul, tt.maximum, tt.minimum)
ALONE = (operator.neg, abs, tt.sqr, tt.sgn, lambda x: x // 3, lambda x: x % 5)
COMPARISONS = (tt.lt, tt.le, tt.gt, tt.ge, tt.eq, tt.neq)


def choose(random, items):
    return items[random.randint(len(items))]


def make_condition(random, size):
    if size > 2 and random.randint(4) == 0:
        return choose(random, (tt.and_, tt.or_))(
            make_condition(random, size // 2), make_condition(random, size // 2)
        )
    return choose(random, COMPARISONS)(
        make_expression(random, size // 2), make_expression(random, size // 2)
    )


def make_expression(random, size):
    """Make a random integer expression of shapes, an arbitrary integer and constants."""
    if size <= 1:
        constant = choose(random, (*range(-2, 3), 100, 2**62))
        return choose(random, (*SHAPES, *INPUTS[1:], tt.constant(constant)))
    kind, part = random.randint(6), size // 2
    if kind == 0:
        return choose(random, ALONE)(make_expression(random, size - 1))
    if kind == 1:
        one = choose(random, (make_condition, make_expression))(random, size - 1)
        return tt.cast(one, choose(random, ("int8", "uint8", "int32", "int64")))
    if kind < 4:
        return choose(random, ARITHMETIC)(
            make_expression(random, part), make_expression(random, part)
        )
    part = size // 3
    return tt.switch(
        make_condition(random, size - 2 * part),
        make_expression(random, part),
        make_expression(random, part),
    )


def make_arguments(random, n):
    """Yield n tuples of arguments for INPUTS: small numbers, and the bounds of their types."""
    for _ in range(n):
        ints = [np.iinfo(variable.dtype) for variable in INPUTS[1:]]
        yield (
            np.zeros(random.randint(0, 4, 2), MATRIX.dtype),
            *(choose(random, (*range(max(int(i.min), -3), 4), i.min, i.max)) for i in ints),
        )


@pytest.mark.parametrize("seed", range(40))
def test_proofs_hold_for_random_values(seed):
    """Each variable that Order replaces by an equal variable has the same value, for all inputs."""
    random = np.random.RandomState(seed)
    expressions = [make_expression(random, 12) for _ in range(20)]
    order, pairs = Order(), []
    for node in theano.gof.graph.io_toposort([], expressions):
        equal = order.find_equal(node.outputs[0])
        if equal is not None:
            pairs += [node.outputs[0], equal]
    assert pairs
    function = theano.function(
        INPUTS,
        [tt.as_tensor_variable(operand) for operand in pairs],
        mode=PYTHON,
        on_unused_input="ignore",
    )
    for arguments in make_arguments(random, 60):
        results = iter(function(*arguments))
        assert all(one == other for one, other in zip(results, results, strict=True))


N, M = SHAPES


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (tt.lt(N + 1, 0), 0),
        (tt.eq(MATRIX.shape[-1], M), 1),
        (tt.ge(N + M - 2, N - 2), 1),
        (tt.eq(N + 1, -M), 0),
        (tt.neq(N + N, 2 * N), 0),
        (tt.le(SMALL, SMALL + N), 1),
        (tt.switch(tt.lt(1, N + 1), 1, N + 1), 1),
        (tt.maximum(N - 3, -3 - M), N - 3),
        # The conditions of a switch distinguish its cases.
        (tt.lt(tt.switch(tt.lt(ANY, 0), 0, ANY), 0), 0),
        (tt.le(tt.switch(tt.lt(ANY, N), ANY, N), N), 1),
        (tt.lt(tt.maximum(tt.minimum(ANY, N), 0), N + 1), 1),
        (tt.switch(tt.and_(tt.lt(ANY, N), tt.lt(N, ANY)), 0, M), M),
        # The order is unknown: find_equal returns None.
        (tt.lt(N - 1, 0), None),
        (tt.lt(ANY, 0), None),
        (tt.lt(N, M), None),
        (tt.le(ANY * ANY, N), None),
        # Expressions that may overflow.
        (tt.le(ANY, ANY + N), None),
        (tt.lt(N * 2**62 * 2, 0), None),
        (tt.eq(SMALL * SMALL, tt.cast(SMALL, "int64") ** 2), None),
        (tt.maximum(tt.sqr(SMALL), tt.sqr(tt.cast(SMALL, "int64"))), None),
        (tt.eq(~UNSIGNED, ~tt.cast(UNSIGNED, "int64")), None),
        (tt.ge(abs(SMALL), 0), None),
        (tt.lt(SMALL - np.int8(1), SMALL), None),
        (tt.ge(tt.cast(UNSIGNED, "int8"), 0), None),
        (tt.maximum(tt.minimum(ANY, N) - ANY, 0), None),
    ],
)
def test_expected_results_are_proved(expression, expected):
    equal = Order().find_equal(expression)
    if isinstance(expected, tt.TensorVariable):
        assert equal_computations([equal], [expected])
    else:
        assert expected == (None if equal is None else equal.data)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "uint64", "float64"])
def test_sums_that_may_overflow_are_not_compared(dtype):
    """A sum of narrow integers is not compared, even after a cast to int64."""
    x = tt.scalar("x", dtype)
    one = tt.constant(1, dtype=dtype)
    assert Order().find_equal(tt.lt(x + one, x)) is None
    assert Order().find_equal(tt.ge(tt.cast(x, "int64") - 1, -1)) is None


def test_a_proof_of_many_cases_ends():
    """The proof ends after a bounded number of steps."""
    x = ANY
    for bound in tt.lscalars(30):
        x = tt.switch(tt.lt(x, bound), x, bound) + tt.maximum(bound, x)
    order = Order()
    assert order.find_equal(tt.lt(x, 0)) is None
    assert order.remaining > -50


def count_operations(variable):
    return len(theano.gof.graph.io_toposort([], [variable]))


@pytest.mark.parametrize("seed", range(40))
def test_the_simplest_formula_is_equal(seed):
    random = np.random.RandomState(seed)
    expressions = [make_expression(random, 8) for _ in range(20)]
    simplest = [Order().simplify(expression) for expression in expressions]
    function = theano.function(
        INPUTS,
        [tt.as_tensor_variable(expression) for expression in expressions + simplest],
        mode=PYTHON,
        on_unused_input="ignore",
    )
    for arguments in make_arguments(random, 60):
        results = function(*arguments)
        assert results[:20] == results[20:]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (tt.maximum(tt.maximum(N - 1, 0) - 2, 0), tt.maximum(N - 3, 0)),
        (tt.minimum(1, N) + tt.minimum(1, N - tt.minimum(1, N)), tt.minimum(2, N)),
        (N - tt.maximum(N - 3, 0), tt.minimum(N, 3)),
        (M + (N - M), N),
        # Each of the next two expressions is a linear function of one length, except for the
        # shortest lengths.
        (tt.switch(tt.lt(N - 1, 0), N + N, N - 1), tt.maximum(N - 1, 0)),
        (tt.maximum(N - 2, -N) + tt.eq(N, 0), tt.switch(tt.lt(N, 1), 1, tt.maximum(N, 1) - 2)),
        (tt.switch(tt.lt(N, 0), N, 4) + 1, 5),
        (tt.minimum(1, N) + tt.minimum(1, M), None),
        (tt.minimum(SMALL, N) - SMALL, tt.minimum(0, N + tt.cast(SMALL, "int64") * -1)),
        (tt.minimum(ANY, N) - ANY, None),
    ],
)
def test_the_simplest_formula_is_as_expected(expression, expected):
    simplest = Order().simplify(expression)
    if expected is None:
        assert simplest is expression
    else:
        order, expected = Order(), tt.as_tensor_variable(expected)
        order.remaining = order.budget
        assert order.are_equal(simplest, expected)
        assert count_operations(simplest) <= count_operations(expected)


@pytest.mark.parametrize("seed", range(20))
def test_tables_and_formulas_are_equal(seed, monkeypatch):
    """For expressions of one length, the table and the formula have the expressions' values."""
    monkeypatch.setitem(globals(), "SHAPES", (N,))
    monkeypatch.setitem(globals(), "INPUTS", (MATRIX,))
    random, tables, order = np.random.RandomState(seed), LengthTables(), Order()
    integers = [make_expression(random, 14) for _ in range(30)]
    nodes = theano.gof.graph.io_toposort([], integers)
    entries = [(node.outputs[0], tables.find_table(node.outputs[0])) for node in nodes]
    entries = [(x, table) for x, table in entries if table]
    assert any(table.row for _, table in entries)
    integers = [x for x, _ in entries if x.dtype == "int64"]
    function = theano.function(
        [MATRIX], [*(x for x, _ in entries), *integers, *map(order.simplify, integers)], mode=PYTHON
    )
    for length in (*range(12), 2**40):
        values = function(np.broadcast_to(np.zeros(1, MATRIX.dtype), (length, 1)))
        assert values[: len(entries)] == [table.compute_value(length) for _, table in entries]
        assert values[-2 * len(integers) : -len(integers)] == values[-len(integers) :]


@pytest.mark.parametrize(
    ("op", "python"),
    [(tt.maximum, max), (tt.minimum, min)]
    + [(getattr(tt, name), getattr(operator, name)) for name in ("lt", "le", "gt", "ge", "eq")]
    + [(tt.neq, operator.ne)],
)
def test_a_table_compares_two_lines(op, python):
    """The table of a comparison of two lines is correct even if they cross between two lengths."""
    for slope in (-3, -2, 1, 2, 3):
        for offset in range(-6, 7):
            table = LengthTables().find_table(op(N * slope + offset, N))
            assert table
            for n in range(20):
                assert table.compute_value(n) == python(n * slope + offset, n), (slope, offset, n)


@pytest.mark.parametrize(
    ("row", "offset"),
    [((-(2**62), 0), 5), ((2**62, 0), -5), ((-(2**63), 2**62), 2**62), ((2**63 - 1, -(2**63)), 5)],
)
def test_simplest_expression_does_not_overflow(row, offset):
    """The line through the values of the row would overflow, so the formula does not use it."""
    first, second = map(np.int64, row)
    expression = tt.switch(tt.lt(N, 1), first, tt.switch(tt.lt(N, 2), second, N + offset))
    assert LengthTables().find_table(expression).row == row
    simplest = Order().simplify(expression)
    function = theano.function([MATRIX], [expression, simplest], mode=PYTHON)
    for length in range(9):
        one, other = function(np.broadcast_to(np.zeros(1, MATRIX.dtype), (length, 1)))
        assert one == other == (*row, length + offset)[min(length, 2)]


def apply_slices(array, slices):
    for index in slices:
        array = array[index]
    return array


@pytest.mark.parametrize("seed", range(10))
def test_chains_of_slices_select_numpys_elements(seed):
    """Slices of slices select the elements that NumPy selects."""
    random = np.random.RandomState(seed)
    ends = (None, None, 0, 1, 2, 3, -1, -2, 7)
    chains = [
        [
            slice(choose(random, ends), choose(random, ends), choose(random, (None, 1, 1, 2, -1)))
            for _ in range(random.randint(2, 5))
        ]
        for _ in range(12)
    ]
    x = tt.lvector()
    function = theano.function([x], [apply_slices(x, slices) for slices in chains], mode=SIMPLER)
    for length in range(12):
        value = np.arange(length)
        for result, slices in zip(function(value), chains, strict=True):
            assert np.array_equal(result, apply_slices(value, slices))


@pytest.mark.parametrize("ends", [(slice(1, None),), (slice(1, None), slice(None, -1))])
def test_a_long_chain_of_slices_has_few_operations(ends):
    """A chain of 200 slices needs fewer than 7 operations.

    Without the patch, it needs 1,001 operations, or theano.function raises an error.
    """
    x = tt.lvector()
    function = theano.function([x], apply_slices(x, ends * (200 // len(ends))))
    assert len(function.maker.fgraph.apply_nodes) < 7
    for length in (0, 1, 100, 200, 201, 210):
        value = np.arange(length)
        assert np.array_equal(function(value), apply_slices(value, ends * (200 // len(ends))))


def test_a_long_chain_of_symbolic_slices_selects_numpys_elements():
    x, starts = tt.lvectors("x", "starts")
    function = theano.function(
        [x, starts], apply_slices(x, [slice(starts[i], None) for i in range(60)])
    )
    values = np.array([0, 1, -3, 2] * 15)
    for length in (0, 5, 50):
        expected = apply_slices(np.arange(length), [slice(start, None) for start in values])
        assert np.array_equal(function(np.arange(length), values), expected)


def stack_scans(x, n):
    """Apply n recurrent layers to a sequence."""
    for _ in range(n):
        x, _ = theano.scan(lambda a, b: tt.tanh(a + b), sequences=x, outputs_info=[tt.zeros(3)])
    return x


def test_layers_of_scans_have_few_integer_operations():
    """Layers of scans and their gradient have the same values with few integer operations."""
    x = tt.matrix()
    last = stack_scans(x, 3)[-1].sum()
    outputs = [last, theano.grad(last, x)]
    function = theano.function([x], outputs)
    plain = theano.function([x], outputs, mode=theano.Mode("py", "fast_compile"))
    fusing = theano.function([x], outputs, mode=theano.Mode("py").excluding("fusion"))
    for length in (1, 2, 5):
        value = np.random.RandomState(length).normal(size=(length, 3)).astype(x.dtype)
        for result, expected in zip(function(value), plain(value), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-4)
    integers = [
        node
        for node in fusing.maker.fgraph.apply_nodes
        if node.outputs[0].ndim == 0 and node.outputs[0].dtype == "int64"
    ]
    assert len(integers) < 60


def test_a_slice_of_all_steps_keeps_all_steps():
    """A slice up to the length needs all steps, even if another slice needs few."""
    x = tt.matrix()
    hidden = stack_scans(x, 1)
    for outputs in ([hidden, hidden[0]], [hidden[1:], hidden[:2][::-1]]):
        function = theano.function([x], outputs)
        for length in (2, 5):
            value = np.ones((length, 3), x.dtype)
            whole = np.tanh(np.ones(3))
            assert len(function(value)[0]) == length - (outputs[0] is not hidden)
            np.testing.assert_allclose(function(value)[1].reshape(-1, 3)[-1], whole, rtol=1e-5)


def test_a_hessian_of_nested_scans_is_correct():
    """The length of an inner graph's input may be the shape of a variable outside of the graph."""
    w, n = tt.vector(), tt.lscalar()
    zero = tt.constant(0, dtype=w.dtype)

    def outer(total, w):
        parts, _ = theano.scan(lambda part, w: part + (w**2).sum(), [], zero, w, 1)
        return total + parts[-1]

    totals, _ = theano.scan(outer, [], zero, w, n)
    with theano.configparser.change_flags(on_opt_error="raise", on_shape_error="raise"):
        function = theano.function([w, n], theano.gradient.hessian(totals[-1], w))
    np.testing.assert_allclose(function(np.ones(3, w.dtype), 2), 4 * np.eye(3))


def test_two_outputs_of_an_op_are_not_equal():
    numbers = [scalar.int64() for _ in range(2)]
    op = Elemwise(scalar.Composite(numbers, [sum(numbers), numbers[0] - numbers[1]]))
    total, difference = op(ANY, N)
    assert Order().find_equal(tt.eq(total, difference)) is None
    assert Order().find_equal(tt.ge(total, difference)) is None
    assert Order().find_equal(tt.eq(total, op(ANY, N)[0])).data


# Order assumes that no dimension is longer than this.
LONGEST = 2**48


@pytest.mark.parametrize("length", [LONGEST - 1, LONGEST])
def test_optimized_results_are_correct_for_the_longest_dimensions(length):
    """An array of stride 0 may have more elements than fit into memory."""
    x = tt.TensorType("int8", (False,))()
    n = x.shape[0]
    outputs = [
        tt.lt(n * 2**14, 0),
        tt.lt(n * 2**15, 0),
        tt.le(n * 2**14 + n, n * 2**14),
        tt.maximum(n * -(2**15), 0),
        tt.switch(tt.lt(n, LONGEST), 1, 2),
        tt.minimum(n, LONGEST),
    ]
    array = np.broadcast_to(np.int8(3), length)
    results = [theano.function([x], outputs, mode=mode)(array) for mode in (None, PYTHON)]
    assert results[0] == results[1]


@pytest.mark.parametrize("seed", range(4))
def test_slices_of_the_longest_dimension_have_numpys_lengths(seed):
    random = np.random.RandomState(seed)
    far = LONGEST // 2
    ends = (None, 0, 3, far, LONGEST - 1, LONGEST, -1, -far, -LONGEST, 2**63 - 1, -(2**63))
    chains = [
        [
            slice(choose(random, ends), choose(random, ends), choose(random, (None, 2, -1)))
            for _ in range(random.randint(1, 4))
        ]
        for _ in range(12)
    ]
    x = tt.TensorType("int8", (False,))()
    lengths = [apply_slices(x, slices).shape[0] for slices in chains]
    array = np.broadcast_to(np.int8(3), LONGEST)
    expected = [apply_slices(array, slices).shape[0] for slices in chains]
    assert theano.function([x], lengths, mode=SIMPLER)(array) == expected
