"""Test the error bounds of matrix products, and the operands in all memory layouts."""

import pytest

np = pytest.importorskip("numpy", reason="the builder's Python has no NumPy")
accuracy = pytest.importorskip("theano_fast.accuracy")


def test_the_error_bound_grows_with_the_terms():
    """gamma(n) = n u / (1 - n u) with the unit roundoff u: 2**-53 (float64), 2**-24 (float32)."""
    unit = 2.0**-53
    assert accuracy.compute_gamma(1, "float64") == unit / (1 - unit)
    assert accuracy.compute_gamma(100, "float32") == pytest.approx(100 * 2.0**-24, rel=1e-4)


@pytest.mark.parametrize(
    ("subscripts", "a", "b", "terms"),
    [
        ("ij,jk->ik", (2, 5), (5, 3), 5),
        ("ij,j->i", (2, 5), (5,), 5),
        ("i,k->ik", (2,), (3,), 1),
        ("ij,jk->ik", (2, 0), (0, 3), 1),
    ],
)
def test_the_number_of_terms_of_a_sum_is_at_least_one(subscripts, a, b, terms):
    assert accuracy.count_terms(subscripts, np.zeros(a), np.zeros(b)) == terms


def test_exact_results_have_extended_precision():
    a = np.array([1.0, 2.0**-60])
    assert accuracy.compute_exact("i,i->", a, np.ones(2)) > 1
    assert accuracy.compute_exact("i,i->", a * 1j, np.ones(2)).dtype == np.clongdouble


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 3)])
def test_every_layout_has_the_same_values(shape):
    values = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    for steps, order in accuracy.list_layouts(len(shape)):
        view = accuracy.make_strided(values, steps, order)
        assert (view == values).all()
        assert view.dtype == values.dtype


def test_a_matrix_has_32_layouts_with_different_strides():
    strides = {
        accuracy.make_strided(np.zeros((3, 4)), steps, order).strides
        for steps, order in accuracy.list_layouts(2)
    }
    assert len(accuracy.list_layouts(2)) == len(strides) == 32


def test_the_gaps_of_a_strided_array_contain_nan():
    view = accuracy.make_strided(np.zeros(3), (2,), "C")
    assert np.isnan(view.base[1::2]).all()
