"""results/copies-of-functions.patch: a copy of a function computes the function's results.

Without the patch, an op of the copy can overwrite an array before another op reads it. A copy
without updates writes to shared variables. A copy with swapped shared variables cannot be copied
again.
"""

import copy
import pickle

import numpy as np
import pytest
import theano
from theano import tensor as tt

X = tt.dvector("x")
COPIES = {
    "copy": lambda f: f.copy(),
    "copy of a copy": lambda f: f.copy().copy(),
    "shared": lambda f: f.copy(share_memory=True),
    "pickle": lambda f: pickle.loads(pickle.dumps(f.copy())),
    "deepcopy": lambda f: copy.deepcopy(f.copy()),
}


@pytest.mark.parametrize("kind", COPIES)
def test_arrays_are_read_before_they_are_overwritten(kind):
    y = tt.exp(X)
    function = theano.function([X], [tt.set_subtensor(y[:1], 5.0), tt.cumsum(y)])
    copied = COPIES[kind](function)
    for actual, expected in zip(copied(np.zeros(3)), function(np.zeros(3)), strict=True):
        assert np.array_equal(actual, expected)


def compile_with_updates():
    """Return a shared variable, and a function that adds its argument to the variable."""
    shared = theano.shared(np.ones(2))
    return shared, theano.function([X], [X + shared, X * shared], updates=[(shared, shared + X)])


@pytest.mark.parametrize("kind", [kind for kind in COPIES if kind not in ("pickle", "deepcopy")])
def test_a_copy_updates_shared_variables(kind):
    shared, function = compile_with_updates()
    assert np.array_equal(COPIES[kind](function)(np.ones(2)), [[2, 2], [1, 1]])
    assert np.array_equal(shared.get_value(), [2, 2])


def test_a_copy_without_updates_changes_no_shared_variable():
    shared, function = compile_with_updates()
    alone = function.copy(delete_updates=True)
    for _ in range(2):
        assert np.array_equal(alone(np.ones(2)), [[2, 2], [1, 1]])
    assert np.array_equal(shared.get_value(), [1, 1])


def test_a_copy_with_swapped_variables_is_copied_again():
    shared, function = compile_with_updates()
    one, other = theano.shared(np.full(2, 5.0)), theano.shared(np.full(2, 7.0))
    swapped = function.copy(swap={shared: one}).copy(swap={one: other})
    assert np.array_equal(swapped(np.ones(2)), [[8, 8], [7, 7]])
    assert np.array_equal(function.copy().copy(swap={shared: other})(np.ones(2)), [[9, 9], [8, 8]])
    assert np.array_equal(one.get_value(), [5, 5])
    assert np.array_equal(shared.get_value(), [1, 1])


@pytest.mark.parametrize("use_cloop", [False, True])
def test_returned_arrays_stay_unchanged_with_allow_gc_false(use_cloop):
    linker = theano.gof.vm.VM_Linker(allow_gc=False, use_cloop=use_cloop)
    function = theano.function([X], X.shape.sum(), mode=theano.Mode(linker, "fast_run"))
    first = function(np.zeros(3))
    function(np.zeros(5))
    assert first == 3


# Maps a name to an input, and to a function that makes the input's value: a view of X's value.
ALIASES = {
    "of its type": (tt.TensorType("float64", (False,))("y"), lambda value: value[1:]),
    "of other dimensions": (tt.dmatrix("y"), lambda value: value.reshape(2, 2)),
    "of bytes": (tt.bvector("y"), lambda value: value.view("int8")),
}


@pytest.mark.parametrize("kind", ALIASES)
def test_views_of_a_mutable_input_are_read_before_it_is_overwritten(kind):
    y, alias = ALIASES[kind]
    function = theano.function([theano.In(X, mutable=True), y], [tt.exp(X), tt.cumsum(y)])
    value = np.zeros(4)
    assert not function(value, alias(value))[1].any()
