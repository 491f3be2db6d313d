"""theano/tensor/linkers: ops that move elements or read dimensions run code of the package.

Without these linkers, a module is compiled for each kind of op.
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
# Maps an op to an expression of a matrix and its expected value.
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


def slices(random, length):
    """Make an index of one dimension: mostly a slice, also with bounds out of range."""
    if random.uniform() < 0.3:
        return int(random.randint(-length, length))
    start, stop = (
        None if random.uniform() < 0.3 else int(random.randint(-length - 2, length + 3))
        for _ in range(2)
    )
    return slice(start, stop, [None, 1, 2, -1, -3][random.randint(5)])


def symbolic(index, variables):
    """Make the same index from scalar inputs of the function."""
    if isinstance(index, slice):
        ends = (symbolic(end, variables) for end in (index.start, index.stop, index.step))
        return slice(*ends)
    if index is None:
        return None
    variables.append((tt.lscalar(), index))
    return variables[-1][0]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_indices(seed, constant):
    """Constant and variable indices equal NumPy's; set and increment, in-place and in a copy."""
    random = np.random.RandomState(seed)
    x = tt.dtensor3()
    array = random.normal(size=(3, 4, 5))
    outputs, expected, variables = [], [], []
    for _ in range(12):
        index = tuple(slices(random, n) for n in array.shape[: random.randint(1, 4)])
        own = index if constant else tuple(symbolic(entry, variables) for entry in index)
        changed, added = array.copy(), array.copy()
        changed[index] = 7
        added[index] += 2
        outputs += [x[own], tt.set_subtensor(x[own], 7.0), tt.inc_subtensor(x[own], 2.0)]
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
        (lambda x, i: added(x, i + 3, x[:1]), IndexError, "index 3 is out of bounds .* size 3"),
        (lambda x, i: added(x, i - 4, x[:1]), IndexError, "index -4 is out of bounds .* size 3"),
        (lambda x, i: added(x, i, x[:, :1]), ValueError, "not broadcastable"),
        (lambda x, i: added(x, i, x[:1, 1:]), ValueError, "not broadcastable"),
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
    thunk, (to, value), result = thunk_of([x, y], output)
    to[0], value[0] = MATRIX.copy(), np.ones(4)
    thunk()
    assert result[0] is to[0]
    assert to[0][0].tolist() == [1, 1, 1, 1]


def test_output_memory_is_reused(thunk_of):
    x, n = tt.dscalar(), tt.lscalar()
    thunk, (value, size), result = thunk_of([x, n], tt.Alloc()(x, n))
    value[0], size[0] = np.array(3.0), np.array(4)
    thunk()
    kept = result[0]
    value[0] = np.array(5.0)
    thunk()
    assert result[0] is kept
    assert kept.tolist() == [5] * 4
    size[0] = np.array(2)
    thunk()
    assert result[0].tolist() == [5] * 2


def test_a_view_keeps_its_array(thunk_of):
    """Nothing is leaked or freed too early."""
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


def test_subclasses_have_their_own_code():
    """Subclasses, such as the ops of devices, keep their code."""

    class Other(subtensor.Subtensor):
        pass

    x = tt.dmatrix()
    node = Other([scalar.int64])(x, scalar.constant(0, dtype="int64")).owner
    assert "Python.h" in node.op.c_linker(node, []).get_src_code()


def test_ops_of_scalars_keep_their_code():
    """Ops of scalar types keep their code."""
    x = scalar.float64()
    assert theano.function([x], [x, tc.deep_copy_op(x)], mode=FAST)(2.5) == [2.5, 2.5]


def added(x, i, value):
    """Add values to the rows whose index is i."""
    return subtensor.AdvancedIncSubtensor1()(x, value, tt.stack([i, i * 0]))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "float16"])
@pytest.mark.parametrize("index", ["int64", "int8", "uint64"])
@pytest.mark.parametrize("inplace", [True, False])
@pytest.mark.parametrize("change", [True, False], ids=["set", "add"])
def test_rows_are_changed_in_the_order_of_indices(change, inplace, index, dtype):
    """Arrays have any memory order, and values are broadcast."""
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
        for same in (array.copy(), np.asfortranarray(array), np.repeat(array, 2, 2)[:, :, ::2]):
            kept = same.copy()
            for _ in range(2):
                result = function(same.copy(order="K") if inplace else same, value, where)
                assert np.array_equal(result, expected)
                assert result.dtype == dtype
            assert np.array_equal(same, kept)


def test_rows_that_may_not_be_written_to(thunk_of):
    x, y, rows = tt.dmatrix(), tt.dvector(), tt.lvector()
    op = subtensor.AdvancedIncSubtensor1(inplace=True)
    thunk, (to, value, where), _ = thunk_of([x, y, rows], op(x, y, rows))
    to[0], value[0], where[0] = MATRIX.copy(), MATRIX[0], ROWS
    to[0].flags.writeable = False
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
def test_memory_that_is_read_is_not_written_to(build, expected, thunk_of):
    """A Scan's buffers contain values that a step reads and values that it writes."""
    x = tt.dvector()
    thunk, (storage,), result = thunk_of([x], build(x))
    for first in range(4):
        buffer = np.full(12, -1.0)
        storage[0] = buffer[2:6]
        storage[0][:] = range(4)
        result[0] = buffer[first : first + len(expected)]
        thunk()
        assert result[0].tolist() == expected


def test_returned_operands_are_not_written_to():
    """A join with an empty array returns the other array."""
    x, y = tt.dvector(), tt.dvector()
    joined = tt.Join(view=0)(0, x, y)
    function = theano.function([x, y], [joined, joined.sum()], mode=FAST)
    first = np.array([1.0, 2.0])
    function(first, [])
    assert function([3.0], [4.0])[0].tolist() == [3, 4]
    assert first.tolist() == [1, 2]


def test_a_single_row_may_have_any_stride(thunk_of):
    x = tt.dmatrix()
    thunk, (storage,), result = thunk_of([x], x[tt.as_tensor([0, 0])])
    storage[0] = np.lib.stride_tricks.as_strided(np.arange(3.0), (1, 3), (9000, 8))
    assert storage[0].flags.c_contiguous
    thunk()
    assert result[0].tolist() == [[0, 1, 2]] * 2


DTYPES = ("bool", "int8", "uint16", "int64", "uint64", "float16", "float32", "complex128")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_all_types(dtype):
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
def test_lengths_and_indices_of_all_types(dtype):
    """The bounds of the types are included."""
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
        for function, of in zip(functions, expected, strict=True):
            try:
                wanted = of(int(value))
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
