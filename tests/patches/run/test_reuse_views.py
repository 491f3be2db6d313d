"""run/reuse-views.patch: DimShuffle and Subtensor reuse the view object of the previous call.

A view is reused only if no object except its thunk refers to it. Without the patch, both ops make a
new view object in each call.
"""

import gc
import itertools
import pickle
import weakref

import numpy as np
import pytest
import theano
from theano import tensor
from theano.gof.cc import CLinker
from theano.gof.vm import VM_Linker
from theano.tensor.elemwise import DimShuffle
from theano.tensor.subtensor import Subtensor

# Maps a name to an expression of a matrix that is a view, and to NumPy's view.
VIEWS = {
    "transposed": (lambda x: x.T, lambda x: x.T),
    "added": (lambda x: x.dimshuffle(1, "x", 0), lambda x: x.T[:, None]),
    "row": (lambda x: x[0], lambda x: x[0]),
    "backwards": (lambda x: x[::-2, 0], lambda x: x[::-2, 0]),
    "empty": (lambda x: x[3:, 1:0], lambda x: x[3:, 1:0]),
    "element": (lambda x: x[-1, 0], lambda x: x[-1, 0]),
}


LINKERS = {
    "kept": lambda: VM_Linker(use_cloop=True, allow_gc=False),
    "collected": lambda: VM_Linker(use_cloop=True, allow_gc=True),
    "Python": lambda: VM_Linker(use_cloop=False, allow_gc=False),
    "C": CLinker,
}


def compile_view(name, linker="kept"):
    """Return a function that doubles a view of its argument; the view is an intermediate result."""
    x = tensor.dmatrix()
    mode = theano.Mode(LINKERS[linker](), "fast_run")
    return theano.function([theano.In(x, borrow=True)], VIEWS[name][0](x) * 2, mode=mode)


def find_storage_of_view(function):
    nodes = function.maker.fgraph.toposort()
    node = next(node for node in nodes if isinstance(node.op, (DimShuffle, Subtensor)))
    return function.fn.storage_map[node.outputs[0]]


def make_arrays():
    """Yield matrices of different shapes and layouts."""
    for rows, columns in ((2, 3), (2, 3), (3, 2), (4, 5), (2, 1), (1, 3), (5, 4)):
        values = np.random.RandomState(rows).uniform(size=(rows, columns))
        read_only = values.copy()
        read_only.flags.writeable = False
        wide = np.repeat(values, 3, axis=1)
        yield values
        yield np.asfortranarray(values)
        yield wide[:, ::3]
        yield wide[:, ::-3][:, ::-1]
        yield values[::-1][::-1]
        yield values[::-1, ::-1]
        yield read_only
        yield np.broadcast_to(values[0], (rows, columns))


@pytest.mark.parametrize("name", VIEWS)
def test_the_view_object_is_reused(name):
    function = compile_view(name)
    function(np.ones((2, 3)))
    storage = find_storage_of_view(function)
    before = id(storage[0])
    assert storage[0] is not None
    for array in make_arrays():
        np.testing.assert_array_equal(function(array), VIEWS[name][1](array) * 2)
        assert id(storage[0]) == before


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("name", VIEWS)
def test_views_have_numpys_values(name, linker):
    function = compile_view(name, linker)
    for array, _ in itertools.product(make_arrays(), range(2)):
        np.testing.assert_array_equal(function(array), VIEWS[name][1](array) * 2)


@pytest.mark.parametrize("name", VIEWS)
def test_views_have_numpys_flags_and_strides(name):
    """Flags and strides equal NumPy's, except for strides of dimensions of length 1."""
    function = compile_view(name)
    for array in make_arrays():
        function(array)
        view, expected = find_storage_of_view(function)[0], np.asarray(VIEWS[name][1](array))
        assert view.shape == expected.shape
        assert name == "empty" or np.shares_memory(view, array)
        assert view.base is (array if array.base is None else array.base)
        assert view.flags.writeable == array.flags.writeable
        assert view.flags.aligned
        assert not view.flags.owndata
        again = np.lib.stride_tricks.as_strided(view, view.shape, view.strides)
        assert view.flags.c_contiguous == again.flags.c_contiguous
        assert view.flags.f_contiguous == again.flags.f_contiguous
        for size, stride, other in zip(view.shape, view.strides, expected.strides, strict=True):
            assert size == 1 or stride == other


@pytest.mark.parametrize(
    "hold", [lambda view: view, lambda view: view[...], weakref.ref, memoryview]
)
@pytest.mark.parametrize("name", VIEWS)
def test_views_with_other_references_stay_unchanged(name, hold):
    """A view is not reused while an array, a weak reference or a memoryview refers to it."""
    function = compile_view(name)
    first, second = np.ones((2, 3)), np.full((2, 3), 5.0)
    function(first)
    held = hold(find_storage_of_view(function)[0])
    function(second)
    assert held is not None
    if isinstance(held, (np.ndarray, memoryview)):
        assert (np.asarray(held) == 1).all()
    assert (find_storage_of_view(function)[0] == 5).all()


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("name", VIEWS)
def test_views_that_a_function_returns_are_not_reused(name, linker):
    x = tensor.dmatrix()
    view = theano.Out(VIEWS[name][0](x), borrow=True)
    mode = theano.Mode(LINKERS[linker](), "fast_run")
    function = theano.function([theano.In(x, borrow=True)], view, mode=mode)
    values = [np.full((2, 3), float(i)) for i in range(4)]
    results = [function(array) for array in values]
    for array, result in zip(values, results, strict=True):
        np.testing.assert_array_equal(result, VIEWS[name][1](array))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_keeps_its_array(name):
    """The view keeps the array alive until the next call, and no longer."""

    class Owner(np.ndarray):
        """A subclass of ndarray: the base of its views has another type."""

    function = compile_view(name)
    alive = []
    for i in range(3):
        owner = np.full((2, 3), float(i)).view(Owner)
        array = np.asarray(owner)
        alive.append(weakref.ref(owner))
        function(array)
        del owner, array
        for storage in function.input_storage:
            storage.storage[0] = None
        gc.collect()
        assert (find_storage_of_view(function)[0] == i).all()
    assert sum(reference() is not None for reference in alive) <= 1


def test_chains_of_views_have_numpys_values():
    x, i = tensor.dtensor3(), tensor.lscalar()
    function = theano.function([x, i], x[i].T[::-1].dimshuffle("x", 1, 0) + x.T[0, 0, i])
    for array in (np.random.RandomState(0).uniform(size=shape) for shape in ((2, 3, 4), (5, 2, 2))):
        for index in (0, 1, -1):
            expected = array[index].T[::-1].T[None] + array.T[0, 0, index]
            np.testing.assert_array_equal(function(array, index), expected)


def test_views_inside_a_scan_have_numpys_values():
    x = tensor.dmatrix()
    outputs, _ = theano.scan(
        lambda row, state: [(row.dimshuffle(0, "x") * state).T[0], row[::-1]],
        sequences=x,
        outputs_info=[tensor.ones_like(x[0]), None],
    )
    function = theano.function([x], outputs)
    values = np.random.RandomState(0).uniform(size=(7, 3))
    for array in (values, values[::-1], np.asfortranarray(values)):
        state = np.ones(3)
        first, second = function(array)
        for row, one, other in zip(array, first, second, strict=True):
            state = (row[:, None] * state).T[0]
            np.testing.assert_array_equal(one, state)
            np.testing.assert_array_equal(other, row[::-1])


def test_an_old_pickle_of_dimshuffle_gets_the_current_code():
    """A pickle of Theano 1.0.5 contains the C code of DimShuffle; loading replaces this code."""
    op = DimShuffle((False, False), [1, 0])
    state = dict(op.__dict__, func_name="old", func_codes=["old"], code_sections={"code": "old"})
    other = DimShuffle.__new__(DimShuffle)
    other.__setstate__(state)
    assert other == op
    assert other.func_name == op.func_name
    assert other.code_sections == op.code_sections
    assert pickle.loads(pickle.dumps(op)).code_sections == op.code_sections


def test_wrong_dimensions_and_indices_are_errors():
    x = tensor.dmatrix()
    function = theano.function([x], x.T * 2)
    function.input_storage[0].storage[0] = np.ones(3)
    with pytest.raises(NotImplementedError, match="input nd"):
        function.fn()
    function = theano.function([x], x[5] * 2)
    function(np.ones((6, 2)))
    with pytest.raises(IndexError, match="index out of bounds"):
        function(np.ones((3, 2)))
    np.testing.assert_array_equal(function(np.full((6, 2), 3.0)), [6, 6])
