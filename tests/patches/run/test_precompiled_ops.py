"""Ops that move elements or read dimensions run precompiled code of the package.

theano/tensor/linkers has the linkers of these ops. Without them, a module is compiled for each op,
dtype and number of dimensions.
"""

import gc
import sys
import weakref

import numpy as np
import pytest
import theano
from theano import compile as tc
from theano import scalar
from theano import tensor as tt
from theano.tensor import opt, subtensor
from theano.tensor.elemwise import DimShuffle
from theano.tensor.join_as import JoinAs

MATRIX = np.arange(12.0).reshape(3, 4)
ROWS = np.array([2, 1, -1])
# Maps the name of an op to an expression of a matrix and the expression's value for MATRIX.
OPS = {
    "AdvancedIncSubtensor1": (
        lambda x: tt.inc_subtensor(x[ROWS], x[:1]),
        MATRIX + [[0], [1], [2]] * MATRIX[:1],
    ),
    "AdvancedSubtensor1": (lambda x: x[ROWS], MATRIX[ROWS]),
    "Alloc": (lambda x: tt.alloc(x[0], 2, 4), np.tile(MATRIX[0], (2, 1))),
    "AllocEmpty": (lambda x: tt.AllocEmpty("int8")(2, 5).shape, [2, 5]),
    "Assert": (lambda x: opt.Assert("why")(x, tt.ge(x[0, 0], 0), 1), MATRIX),
    "DeepCopyOp": (tc.deep_copy_op, MATRIX),
    "DimShuffle": (lambda x: x.dimshuffle(1, "x", 0), MATRIX.T[:, None]),
    "JoinAs": (
        lambda x: JoinAs(0)(tt.as_tensor([2, 3]), x[1:], x),
        np.concatenate([MATRIX[1:], MATRIX]),
    ),
    "Join": (lambda x: tt.join(-1, x, x[:, 1:]), np.concatenate([MATRIX, MATRIX[:, 1:]], 1)),
    "MakeVector": (lambda x: opt.MakeVector("float64")(x[0, 1], x[2, 3]), [1, 11]),
    "Rebroadcast": (lambda x: tc.Rebroadcast((0, True))(x[1:2]), MATRIX[1:2]),
    "Reshape": (lambda x: x.reshape((2, 1, -1)), MATRIX.reshape(2, 1, 6)),
    "ScalarFromTensor": (lambda x: x[: tt.argmax(x[0]) - 1], MATRIX[:2]),
    "Shape_i": (tc.Shape_i(1), 4),
    "SpecifyShape": (lambda x: tc.specify_shape(x, (3, 4)), MATRIX),
    "Split": (lambda x: tt.Split(2)(x, 1, [1, 3])[1], MATRIX[:, 1:]),
    "Subtensor": (lambda x: x[::-2, 1:], MATRIX[::-2, 1:]),
    "IncSubtensor": (lambda x: tt.inc_subtensor(x[1], 5.0)[1], MATRIX[1] + 5),
}
FAST = theano.Mode(theano.gof.vm.VM_Linker(use_cloop=True, allow_gc=False), None)


@pytest.mark.parametrize("op", OPS)
def test_values_equal_numpys(op):
    x = tt.dmatrix("x")
    build, expected = OPS[op]
    function = theano.function([x], build(x), mode=FAST, on_unused_input="ignore")
    nodes = [n for n in function.maker.fgraph.toposort() if type(n.op).__name__ == op]
    assert nodes
    for node in nodes:
        missing = {}
        # add_missing adds the modules that must be compiled for the node.
        node.op.c_linker(node, []).add_missing(missing)
        assert missing == {}
    for _ in range(3):
        result = function(MATRIX)
        assert np.array_equal(result, expected)
        assert result.dtype == function.maker.fgraph.outputs[0].dtype


def test_no_compiler_runs(run_python, tmp_path):
    program = """
    import theano, theano.tensor as tt
    x = tt.dmatrix()
    y = tt.inc_subtensor(x.T[::-1, 1:], 2.0)
    f = theano.function([x], tt.join(0, y, tt.alloc(y[0], 2, 2)), mode=theano.Mode("cvm", None))
    print(f([[1, 2], [3, 4]]).tolist())
    """
    compiler = tmp_path / "g++"
    compiler.write_text('#!/bin/sh\ncase "$*" in *mod.cpp*) exit 1;; esac\nexec g++ "$@"\n')
    compiler.chmod(0o755)
    flags = f"cxx={compiler},base_compiledir={tmp_path}/compiled"
    result = run_python(program, flags=flags)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "[[1.0, 5.0], [2.0, 6.0], [1.0, 5.0], [1.0, 5.0]]"


def make_index(random, length):
    """Return a random index of a dimension: an integer, or a slice with any bounds."""
    if random.uniform() < 0.3:
        return int(random.randint(-length, length))
    start, stop = (
        None if random.uniform() < 0.3 else int(random.randint(-length - 2, length + 3))
        for _ in range(2)
    )
    return slice(start, stop, [None, 1, 2, -1, -3][random.randint(5)])


def make_symbolic(index, variables):
    """Return an index in which a scalar variable replaces each integer.

    Append each pair (variable, integer) to `variables`.
    """
    if isinstance(index, slice):
        ends = (make_symbolic(end, variables) for end in (index.start, index.stop, index.step))
        return slice(*ends)
    if index is None:
        return None
    variables.append((tt.lscalar(), index))
    return variables[-1][0]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_indexing_setting_and_incrementing_equal_numpys(seed, constant):
    """Random constant or symbolic indices select, set and increment NumPy's elements."""
    random = np.random.RandomState(seed)
    x = tt.dtensor3()
    array = random.normal(size=(3, 4, 5))
    outputs, expected, variables = [], [], []
    for _ in range(12):
        index = tuple(make_index(random, n) for n in array.shape[: random.randint(1, 4)])
        theano_index = (
            index if constant else tuple(make_symbolic(entry, variables) for entry in index)
        )
        changed, added = array.copy(), array.copy()
        changed[index] = 7
        added[index] += 2
        parts = [x[theano_index] for _ in range(3)]
        outputs += [parts[0], tt.set_subtensor(parts[1], 7.0), tt.inc_subtensor(parts[2], 2.0)]
        expected += [array[index], changed, added]
    symbols = [variable for variable, _ in variables]
    function = theano.function([x, *symbols], outputs, mode=theano.Mode("cvm", None))
    for _ in range(2):
        results = function(array, *[value for _, value in variables])
        for result, value in zip(results, expected, strict=True):
            assert np.array_equal(result, value)


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda x, i: x[i + 3], IndexError, "index out of bounds"),
        (lambda x, i: x[i - 4], IndexError, "index out of bounds"),
        (lambda x, i: x[:: i * 0], ValueError, "slice step cannot be zero"),
        (lambda x, i: x.reshape((i + 6, 1)), ValueError, "cannot reshape"),
        (lambda x, i: tt.Split(2)(x, 1, tt.stack([i, i]))[0], ValueError, "sums to 0, expected 4"),
        (lambda x, i: tt.Split(2)(x, 1, tt.stack([i - 1, i + 5]))[0], ValueError, "negative"),
        (lambda x, i: tt.Split(1)(x, i + 2, tt.stack([i]))[0], IndexError, "invalid axis 2"),
        (lambda x, i: tt.join(i + 5, x, x), IndexError, "invalid axis 5"),
        (lambda x, i: tc.specify_shape(x, tt.stack([i, i])), AssertionError, "dim 0 of input"),
        (lambda x, i: opt.Assert('a "reason"\n€')(x, 1, i), AssertionError, '^a "reason"\n€'),
        (lambda x, i: tc.Rebroadcast((0, True))(x), ValueError, "supposed to be 1 .got 3"),
        (lambda x, i: tt.alloc(x, i, 4), ValueError, "broadcast"),
        (lambda x, i: x[tt.stack([0, i + 3])], IndexError, "index 3 is out of bounds .* size 3"),
        (lambda x, i: x[tt.stack([0, i - 4])], IndexError, "index -4 is out of bounds .* size 3"),
        (lambda x, i: x[i:i, :][tt.stack([i])], IndexError, "index 0 is out of bounds .* size 0"),
        (lambda x, i: add_rows(x, i + 3, x[:1]), IndexError, "index 3 is out of bounds .* size 3"),
        (lambda x, i: add_rows(x, i - 4, x[:1]), IndexError, "index -4 is out of bounds .* size 3"),
        (lambda x, i: add_rows(x, i, x[:, :1]), ValueError, "not broadcastable"),
        (lambda x, i: add_rows(x, i, x[:1, 1:]), ValueError, "not broadcastable"),
        (lambda x, i: JoinAs(1)(tt.stack([4, i]), x, x), ValueError, "has 4 elements .* has 0"),
        (lambda x, i: tt.AllocEmpty("int8")(i - 1), ValueError, "negative dimensions"),
    ],
)
def test_errors_leak_no_reference(build, error, message):
    x, i = tt.dmatrix(), tt.lscalar()
    function = theano.function([x, i], build(x, i), mode=FAST, on_unused_input="ignore")
    array = MATRIX.copy()
    references = set()
    for _ in range(3):
        with pytest.raises(error, match=message):
            function(array, 0)
        gc.collect()
        references.add(sys.getrefcount(array))
    assert len(references) == 1


def test_an_in_place_op_returns_its_input(thunk_of):
    x, y = tt.dmatrix(), tt.dvector()
    output = tt.set_subtensor(x[0], y, inplace=True)
    thunk, (target, value), result = thunk_of([x, y], output)
    target[0], value[0] = MATRIX.copy(), np.ones(4)
    thunk()
    assert result[0] is target[0]
    assert target[0][0].tolist() == [1, 1, 1, 1]


def test_output_memory_is_reused(thunk_of):
    x, n = tt.dscalar(), tt.lscalar()
    thunk, (value, size), result = thunk_of([x, n], tt.Alloc()(x, n))
    value[0], size[0] = np.array(3.0), np.array(4)
    thunk()
    first = result[0]
    value[0] = np.array(5.0)
    thunk()
    assert result[0] is first
    assert first.tolist() == [5] * 4
    size[0] = np.array(2)
    thunk()
    assert result[0].tolist() == [5] * 2


def test_a_view_keeps_its_array(thunk_of):
    """A view keeps its array alive, and the array is freed with the view."""
    x = tt.dmatrix()
    thunk, (storage,), result = thunk_of([x], DimShuffle((False, False), [1, 0])(x))
    storage[0] = np.ones((2, 3))
    array = weakref.ref(storage[0])
    for _ in range(3):
        thunk()
    storage[0] = None
    assert array() is not None
    assert result[0].shape == (3, 2)
    result[0] = None
    assert array() is None


def test_subclasses_use_their_own_c_code():
    """A subclass of a precompiled op, such as an op of a device, does not run precompiled code."""

    class Other(subtensor.Subtensor):
        pass

    x = tt.dmatrix()
    node = Other([scalar.int64])(x, scalar.constant(0, dtype="int64")).owner
    assert "Python.h" in node.op.c_linker(node, []).get_src_code()


def test_deep_copies_of_scalars_are_correct():
    """DeepCopyOp of a scalar type uses its own C code, not precompiled code."""
    x = scalar.float64()
    assert theano.function([x], [x, tc.deep_copy_op(x)], mode=FAST)(2.5) == [2.5, 2.5]


def add_rows(x, i, value):
    """Return x with values added to its rows i and 0."""
    return subtensor.AdvancedIncSubtensor1()(x, value, tt.stack([i, i * 0]))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "float16"])
@pytest.mark.parametrize("index", ["int64", "int8", "uint64"])
@pytest.mark.parametrize("inplace", [True, False])
@pytest.mark.parametrize("change", [True, False], ids=["set", "add"])
def test_rows_are_changed_in_the_order_of_indices(change, inplace, index, dtype):
    """Rows are set or incremented one after another, for any memory order and broadcast values."""
    x, rows = tt.tensor3(dtype=dtype), tt.vector(dtype=index)
    op = subtensor.AdvancedIncSubtensor1(inplace, change)
    random = np.random.RandomState(0)
    array = random.randint(0, 9, (4, 2, 3)).astype(dtype)
    values = random.randint(0, 9, (6, 2, 3)).astype(dtype)
    where = np.array([1, 3, 1, 0, 1, 3], index)
    if index != "uint64":
        where[1::2] -= 4
    layouts = [
        values,
        values[::-1],
        np.asfortranarray(values),
        values[:1],
        values[:, :1],
        values[0],
    ]
    for value in (*layouts, values[0, :, :1], values[0, 0], values[0, 0, 0]):
        y = tt.TensorType(dtype, (False,) * value.ndim)()
        function = theano.function(
            [theano.In(x, mutable=True), y, rows], op(x, y, rows), mode=FAST, accept_inplace=True
        )
        expected = array.copy()
        for row, new in zip(where, np.broadcast_to(value, values.shape), strict=True):
            expected[row] = new if change else expected[row] + new
        for operand in (array.copy(), np.asfortranarray(array), np.repeat(array, 2, 2)[:, :, ::2]):
            before = operand.copy()
            for _ in range(2):
                result = function(operand.copy(order="K") if inplace else operand, value, where)
                assert np.array_equal(result, expected)
                assert result.dtype == dtype
            assert np.array_equal(operand, before)


def test_writing_to_rows_of_a_read_only_array_is_an_error(thunk_of):
    x, y, rows = tt.dmatrix(), tt.dvector(), tt.lvector()
    op = subtensor.AdvancedIncSubtensor1(inplace=True)
    thunk, (target, value, where), _ = thunk_of([x, y, rows], op(x, y, rows))
    target[0], value[0], where[0] = MATRIX.copy(), MATRIX[0], ROWS
    target[0].flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        thunk()


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x: tt.join(0, x, tt.constant([7.0, 8.0])), [0, 1, 2, 3, 7, 8]),
        (lambda x: tt.Split(1)(x, 0, tt.TensorConstant(tt.lvector, np.array([4]))), [0, 1, 2, 3]),
        (lambda x: tt.inc_subtensor(x[:1], 5.0), [5, 1, 2, 3]),
        (lambda x: x[tt.as_tensor([3, 0, 0])], [3, 0, 0]),
    ],
)
def test_an_output_array_that_overlaps_the_input_is_not_overwritten(build, expected, thunk_of):
    """Results are correct if the output's storage holds an array that overlaps the input.

    In a Scan, the values that a step reads and the values that it writes can be in one buffer.
    """
    x = tt.dvector()
    thunk, (storage,), result = thunk_of([x], build(x))
    for first in range(4):
        buffer = np.full(12, -1.0)
        storage[0] = buffer[2:6]
        storage[0][:] = range(4)
        result[0] = buffer[first : first + len(expected)]
        thunk()
        assert result[0].tolist() == expected


def test_an_operand_that_a_join_returned_is_not_overwritten():
    """A join with an empty array returns the other array; the next call must not write into it."""
    x, y = tt.dvector(), tt.dvector()
    joined = tt.Join(view=0)(0, x, y)
    function = theano.function([x, y], [joined, joined.sum()], mode=FAST)
    first = np.array([1.0, 2.0])
    function(first, [])
    assert function([3.0], [4.0])[0].tolist() == [3, 4]
    assert first.tolist() == [1, 2]


def test_rows_of_a_matrix_with_one_row_of_any_stride_are_correct(thunk_of):
    x = tt.dmatrix()
    thunk, (storage,), result = thunk_of([x], x[tt.as_tensor([0, 0])])
    storage[0] = np.lib.stride_tricks.as_strided(np.arange(3.0), (1, 3), (9000, 8))
    assert storage[0].flags.c_contiguous
    thunk()
    assert result[0].tolist() == [[0, 1, 2]] * 2


@pytest.mark.parametrize("dtype", ["int8", "float64", "complex128"])
@pytest.mark.parametrize("n_columns", [0, 1, 5])
def test_rows_of_a_transposed_matrix_are_transposed(thunk_of, dtype, n_columns):
    x, rows = tt.matrix(dtype=dtype), [2, 0, -1, 2]
    thunk, (storage,), result = thunk_of([x], x[tt.as_tensor(rows)])
    storage[0] = np.arange(4 * n_columns, dtype=dtype).reshape(n_columns, 4).T
    expected = storage[0][rows]
    # Without an output; with an output in C order; with an output that overlaps the input.
    for output in (None, np.empty((4, n_columns), dtype), storage[0]):
        result[0] = output
        thunk()
        np.testing.assert_array_equal(result[0], expected)
        assert result[0].flags.f_contiguous or output is not None


DTYPES = ("bool", "int8", "uint16", "int64", "uint64", "float16", "float32", "complex128")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_all_types_equal_numpys(dtype):
    x, y = tt.matrix(dtype=dtype), tt.vector(dtype=dtype)
    array = np.array([[0, 1, 2], [3, 100, 101]]).astype(dtype)
    row = array[1]
    cases = [
        (tt.alloc(y, 2, 3), np.tile(row, (2, 1))),
        (tt.alloc(x[0, 1], 3), np.full(3, array[0, 1])),
        (tc.deep_copy_op(x[:, ::-1]), array[:, ::-1]),
        (x.dimshuffle(1, "x", 0), array.T[:, None]),
        (tt.join(0, x, x[:1]), np.concatenate([array, array[:1]])),
        (tt.join(1, x, x[:, :1], x), np.concatenate([array, array[:, :1], array], 1)),
        (x[[1, -2, 1]], array[[1, 0, 1]]),
        (y[[1, -2, 1]], row[[1, 1, 1]]),
        (opt.MakeVector(dtype)(x[0, 1], x[1, 2]), array[[0, 1], [1, 2]]),
        (x.reshape((3, 2)), array.reshape(3, 2)),
        (tt.Split(2)(x, 1, [1, 2])[1], array[:, 1:]),
        (x[::-1, 1], array[::-1, 1]),
        (tt.set_subtensor(x[0], y), array[[1, 1]]),
    ]
    if dtype != "bool":
        cases.append((tt.inc_subtensor(x[0], y), np.array([array[0] + row, row])))
    function = theano.function([x, y], [output for output, _ in cases], mode=FAST)
    for operand in (array, np.asfortranarray(array), np.repeat(array, 2, 1)[:, ::2]):
        for _ in range(2):
            for result, (_, expected) in zip(function(operand, row), cases, strict=True):
                assert result.dtype == dtype
                assert np.array_equal(result, expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_lengths_and_indices_of_all_types_select_numpys_elements(dtype):
    """An index of any integer type selects NumPy's elements, also at the bounds of the type."""
    x, i = tt.dvector(), tt.scalar(dtype=dtype)
    ends = np.iinfo(dtype)
    array = np.arange(5.0)
    parts = [x[i:], x[:i], x[i::-1], x[i], tt.set_subtensor(x[i:], 7.0)]
    functions = [theano.function([x, i], outputs, mode=FAST) for outputs in parts]
    expected = [
        lambda i: array[i:],
        lambda i: array[:i],
        lambda i: array[i::-1],
        lambda i: array[i],
        lambda i: np.where(np.arange(5) < (i if i >= 0 else i + 5), array, 7),
    ]
    for value in {0, 1, 4, 5, 100, ends.max, ends.max - 1, max(ends.min, -1), ends.min}:
        for function, compute in zip(functions, expected, strict=True):
            try:
                wanted = compute(int(value))
            except (IndexError, OverflowError):
                with pytest.raises((IndexError, OverflowError)):
                    function(array, value)
            else:
                assert np.array_equal(function(array, value), wanted), (
                    value,
                    function.maker.fgraph,
                )
    function = theano.function([i], tt.alloc(np.float64(3), i), mode=FAST)
    assert function(2).tolist() == [3, 3]
