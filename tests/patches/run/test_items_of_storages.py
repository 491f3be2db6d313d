"""run/items-of-storages.patch: a thunk's struct has its parameters and the inputs' addresses.

Without the patch, each call reads the inputs from the lists of the storages, and the parameters
from another object.
"""

import ctypes

import numpy as np
import pytest
import theano
from theano import tensor
from theano.gof.cc import CLinker

VALUES = np.arange(6.0).reshape(2, 3)


def get_source(function):
    """Return the C source for the first node of a function."""
    node = function.maker.fgraph.toposort()[0]
    graph = theano.gof.FunctionGraph(node.inputs, node.outputs)
    return CLinker().accept(graph).get_src_code()


def test_thunks_read_no_storage_list():
    x = tensor.dmatrix()
    code = get_source(theano.function([x], tensor.sqrt(x)))
    assert "PyList_" not in code[code.index("int run(") : code.index("Module init")]


def test_parameters_are_in_the_struct():
    x = tensor.dmatrix()
    assert " new _Params" not in get_source(theano.function([x], theano.Out(x.T, borrow=True)))


@pytest.mark.parametrize("linker", ["cvm", "cvm_nogc", "vm", "vm_nogc", "c|py", "c"])
def test_each_call_reads_the_current_inputs(linker):
    x, y = tensor.dmatrices("x", "y")
    mode = theano.Mode(linker, "fast_run")
    function = theano.function([x, y], [tensor.sqrt(x).T + y, x.shape[0], x * 2], mode=mode)
    calls = []
    for scale in (1.0, 2.0, 3.0):
        for shape in ((2, 3), (3, 2), (0, 3)):
            matrix = np.full(shape, scale)
            calls.append((matrix, function(matrix, matrix.T)))
    for matrix, (first, second, third) in calls:
        np.testing.assert_array_equal(first, np.sqrt(matrix).T + matrix.T)
        assert second == matrix.shape[0]
        np.testing.assert_array_equal(third, matrix * 2)


@pytest.mark.parametrize("linker", ["cvm", "c"])
def test_a_call_after_an_error_has_the_correct_result(linker):
    x, y = tensor.dmatrices("x", "y")
    function = theano.function([x, y], tensor.sqrt(x + y), mode=theano.Mode(linker, "fast_run"))
    for _ in range(3):
        np.testing.assert_array_equal(function(VALUES, VALUES), np.sqrt(2 * VALUES))
        with pytest.raises(ValueError, match="mis-match"):
            function(VALUES, VALUES[:1, :2])


def test_an_array_in_the_output_storage_is_reused():
    """The thunk writes into the array that the output's storage holds, if it has the shape."""
    x = tensor.dmatrix()
    function = theano.function([x], theano.Out(tensor.sqrt(x), borrow=True))
    (node,) = function.maker.fgraph.apply_nodes
    storage = function.fn.storage_map[node.outputs[0]]
    storage[0] = prepared = np.zeros((2, 3))
    function.input_storage[0].storage[0] = VALUES
    function.fn()
    assert storage[0] is prepared
    np.testing.assert_array_equal(prepared, np.sqrt(VALUES))


def test_an_input_that_is_no_array_is_an_error():
    x = tensor.dmatrix()
    function = theano.function([x], tensor.sqrt(x))
    function.input_storage[0].storage[0] = None
    with pytest.raises(ValueError, match="expected an ndarray, not None"):
        function.fn()


def test_parameters_stay_valid_when_the_node_forgets_them():
    x = tensor.dmatrix()
    function = theano.function([x], [x.dimshuffle(1, "x", 0) * 2, x.shape[1]])
    for node in function.maker.fgraph.apply_nodes:
        node.tag.__dict__.clear()
    assert function(VALUES)[0].shape == (3, 1, 2)
    del function


def find_addresses(function):
    """Return a dictionary from the ids of storages to the addresses of their items.

    A storage is a list. The fourth word of CPython's list object is the address of the items.
    """
    cells = [cell for cell in function.fn.storage_map.values() if isinstance(cell, list)]
    return {id(cell): ctypes.c_void_p.from_address(id(cell) + 3 * 8).value for cell in cells}


@pytest.mark.parametrize("linker", ["cvm", "cvm_nogc", "vm"])
def test_items_keep_their_addresses(linker):
    """Calls, errors, updates, copies and Function.free do not move the items of storages."""
    x, state, other = tensor.dmatrix(), theano.shared(VALUES), theano.shared(VALUES + 1)
    values, _ = theano.scan(lambda row, last: row + last, x, tensor.zeros(3))
    outputs = [x.T * 2, values[-1], tensor.exp(state).sum()]
    mode = theano.Mode(linker, "fast_run")
    function = theano.function([x], outputs, updates=[(state, state + x)], mode=mode)
    addresses = find_addresses(function)
    function(VALUES)
    state.set_value(VALUES[:1], borrow=True)
    with pytest.raises(ValueError, match="mis-match"):
        function(VALUES)
    state.set_value(VALUES)
    copies = [function.copy(), function.copy(share_memory=True), function.copy(swap={state: other})]
    for copied in copies:
        copied(VALUES)
    function.free()
    state.set_value(VALUES)
    function(VALUES)
    assert find_addresses(function) == addresses
    assert function.list_cells_to_free() == [
        cell
        for variable, cell in function.fn.storage_map.items()
        if not isinstance(variable, theano.Constant)
    ]
