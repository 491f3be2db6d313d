"""graph/known-order.patch reuses formulas of integers for slices of the same form.

Without the patch, each slice of a graph is simplified by its own proofs.
"""

import itertools

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.scan_module.scan_utils import equal_computations
from theano.tensor.order import formulas, make_canonical_slice, reuse_formulas, simplify, slices

X, Y = tt.vectors("x", "y")
A, B, C, D = tt.lscalars("a", "b", "c", "d")


@reuse_formulas
def add_all(*terms):
    """Return the sum of the terms, and None."""
    return tt.add(*terms), None


def describe(*arguments):
    """Return the description of arguments, without the variables."""
    return formulas.describe(arguments)[0]


ENDS = [
    lambda x, i: None,
    lambda x, i: 2,
    lambda x, i: -2,
    lambda x, i: np.int8(3),
    lambda x, i: i,
    lambda x, i: i + 1,
    lambda x, i: x.shape[0] - 1,
    lambda x, i: tt.minimum(x.shape[0], i),
    lambda x, i: tt.switch(tt.lt(i, 0), i + x.shape[0], i),
]


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("start", ENDS)
def test_a_reused_formula_equals_a_new_formula(start, step):
    for stop in ENDS:
        make_canonical_slice(start(X, A), stop(X, B), step, X.shape[0])
        ends = start(Y, C), stop(Y, D)
        reused, _ = make_canonical_slice(*ends, step, Y.shape[0])
        first, last = ends if step > 0 else ends[::-1]
        new = slices.clip_ends.__wrapped__(first, last, Y.shape[0], step < 0)
        assert equal_computations(
            *[list(map(tt.as_tensor_variable, pair)) for pair in ((reused.start, reused.stop), new)]
        )


def test_a_formula_is_made_once():
    calls = []

    @reuse_formulas
    def clip(x, low):
        calls.append(x)
        return tt.maximum(x, low)

    first, second = clip(A + B, 0), clip(C + D, 0)
    assert len(calls) == 1
    assert equal_computations([first, second], [tt.maximum(A + B, 0), tt.maximum(C + D, 0)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((A, B), (A, A)),
        ((A + B, A), (A + B, B)),
        ((X.shape[0], X.shape[0]), (X.shape[0], Y.shape[0])),
        ((X.shape[0] - A, X.shape[0]), (X.shape[0] - A, Y.shape[0])),
        ((X.shape[0],), (A,)),
        ((A + 1,), (A + 2,)),
        ((A + 1,), (A + np.int64(1),)),
        ((1,), (True,)),
        ((slice(1, None),), (slice(None, 1),)),
        ((np.array(1),), (np.array(1, "int8"),)),
        ((A,), (tt.iscalar(),)),
    ],
)
def test_different_arguments_have_different_descriptions(one, other):
    assert describe(*one) != describe(*other)
    assert describe(*one) == describe(*one)


def test_lengths_of_the_same_array_are_equal():
    shape_i = theano.compile.ops.Shape_i(0)
    assert describe(shape_i(X), shape_i(X)) == describe(shape_i(Y), shape_i(Y))
    assert describe(shape_i(X), shape_i(X)) != describe(shape_i(X), shape_i(Y))


def test_other_arguments_are_not_reused():
    """Long chains, and arguments that are not hashable."""
    x = A
    for _ in range(formulas.MAX_VARIABLES):
        x = x + B
    assert formulas.describe((x,)) is None
    assert simplify(x).type == x.type

    @reuse_formulas
    def count(values):
        return len(values)

    assert count([1, 2]) == 2


def test_the_number_of_formulas_is_limited(monkeypatch):
    monkeypatch.setattr(formulas, "MAX_FORMULAS", 2)
    results = [add_all(A, B, *[1] * n)[0] for n in (1, 2, 3, 1)]
    assert equal_computations(results[:1], results[3:])


def test_a_result_of_other_variables_is_not_recorded():
    results = iter([A, B])

    @reuse_formulas
    def take_next(x):
        return x + next(results)

    assert equal_computations([take_next(C), take_next(D)], [C + A, D + B])


def test_slices_of_several_arrays_equal_numpys():
    """The constants of a reused formula belong to one graph each."""
    arrays = tt.vectors(4)
    ends = [slice(None, None, -1), slice(1, -1), slice(A, None), slice(-3, B, 2)]
    outputs = [x[end][::-1] for end, x in itertools.product(ends, arrays)]
    function = theano.function([*arrays, A, B], outputs)
    values = [np.arange(n).astype(theano.config.floatX) for n in (0, 1, 5, 9)]
    results = function(*values, 2, -1)
    ends = [slice(None, None, -1), slice(1, -1), slice(2, None), slice(-3, -1, 2)]
    for result, (end, value) in zip(results, itertools.product(ends, values), strict=True):
        np.testing.assert_array_equal(result, value[end][::-1])
