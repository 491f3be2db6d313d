"""results/kept-shapes.patch: a replacement has the shape of the variable that it replaces.

Without the patch, a rewrite that removes a constant with equal elements loses its shape. A rewrite
removes an Alloc although it repeats an element. Some inferred shapes are wrong.
"""

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.tensor import extra_ops, nlinalg

X, Y, ONE, OTHER = tt.dvector("x"), tt.dvector("y"), tt.dscalar(), tt.dscalar()
SMALL = tt.bvector()
VALUES = np.arange(4.0)
ROW = X.dimshuffle("x", 0)
ONES, ZEROS = np.ones((2, 4)), np.zeros((2, 4))
BYTES = np.ones((2, 3), "int8")

PROGRAMS = {
    "switch": tt.switch(np.ones(3), ONE, OTHER),
    "switch of a matrix": tt.switch(np.zeros((2, 3)), ONE, OTHER),
    "switch of rows": tt.switch(ZEROS, ROW, ROW * 2),
    "and": tt.bitwise_and(SMALL.dimshuffle("x", 0), BYTES * 0),
    "or": tt.bitwise_or(SMALL.dimshuffle("x", 0), BYTES * 0),
    "quotient": SMALL.dimshuffle("x", 0) // BYTES,
    "sigmoid": tt.exp(ROW) / (ONES + tt.exp(ROW)),
    "reciprocal sigmoid": ONES / (1 + tt.exp(-ROW)),
    "erfc": ONES - tt.erf(ROW),
    "minus erfc": tt.erf(ROW) - ONES,
    "power": ROW**ONES,
    # In the call, Y has one element, which these expressions repeat.
    "alloc": tt.alloc(Y, 4),
    "slice of an alloc": tt.alloc(Y, 4)[2:],
    "element of an alloc": tt.alloc(Y, 2, 4)[1, 3],
    "sum of an alloc": tt.alloc(Y, 4).sum(),
    # Without a condition of the patch, the optimization of these expressions does not end.
    "sum with an alloc": X + tt.alloc(Y, 4),
    "sum with a set row": X + tt.set_subtensor(tt.alloc(X, 2, 4)[0], Y)[0],
    "alloc of an alloc": tt.alloc(tt.alloc(Y, 4), 3, 4),
    "slice after set_subtensor": tt.set_subtensor(X[:3], Y)[:3],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_equal_unoptimized_results(same_as_unoptimized, name):
    values = {X: VALUES, Y: np.array([7.0]), ONE: 1.0, OTHER: 2.0, SMALL: BYTES[0]}
    same_as_unoptimized(PROGRAMS[name], values, {"float64": 1e-10})


def test_an_alloc_that_repeats_nothing_is_removed():
    function = theano.function([X], tt.alloc(X * 2, X.shape[0]))
    assert not [n for n in function.maker.fgraph.apply_nodes if isinstance(n.op, tt.Alloc)]


def test_a_reshape_of_an_empty_column_keeps_its_shape():
    """Without optimizations, the reshape raises an error, because -1 is ambiguous."""
    column = tt.dcol()
    function = theano.function([column], column.reshape((column.shape[0], -1)))
    assert [function(np.ones((n, 1))).shape for n in (0, 2)] == [(0, 1), (2, 1)]


def test_set_subtensor_keeps_all_three_terms_of_a_sum():
    """Without the patch, the third term is lost if the indices are constants."""
    z = tt.dvector()
    output = tt.set_subtensor(X[[0, 2]], X[[0, 2]] + Y + z)
    arguments = VALUES, np.array([1.0, 2]), np.array([10.0, 20])
    np.testing.assert_array_equal(theano.function([X, Y, z], output)(*arguments), [11, 1, 24, 3])


@pytest.mark.parametrize("lengths", [(1, 3), (3, 1), (2, 2)])
def test_the_shape_of_indexing_by_two_vectors_is_correct(lengths):
    matrix, i, j = tt.dmatrix(), tt.lvector(), tt.lvector()
    function = theano.function([matrix, i, j], matrix[i, j].shape)
    indices = [np.arange(length) for length in lengths]
    assert list(function(np.ones((3, 4)), *indices)) == [max(lengths)]


def test_the_shape_of_a_difference_of_high_order_is_0():
    assert list(theano.function([X], extra_ops.diff(X, n=5).shape)(VALUES)) == [0]


def test_the_shape_of_a_pseudo_inverse_is_transposed():
    row = tt.drow()
    function = theano.function([row], nlinalg.pinv(row).shape)
    assert list(function(np.array([[1.0, 2]]))) == [2, 1]


def test_tensordot_accepts_negative_axes():
    cube = tt.dtensor3()
    function = theano.function([X, cube], tt.tensordot(X, cube, axes=[[-1], [-1]]))
    one, other = np.array([2.0]), np.arange(6.0).reshape(2, 3, 1)
    np.testing.assert_array_equal(function(one, other), np.tensordot(one, other, [[-1], [-1]]))
