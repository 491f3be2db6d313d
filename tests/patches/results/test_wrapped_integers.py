"""results/wrapped-integers.patch: optimizations compute integers in their declared type.

Without the patch, rewrites split, join and distribute sums and products, and move factors out of
reductions, as if integers had no bounds. Constants of more than 53 bits are rounded. The minimum is
wrong if an element is the smallest integer.
"""

import numpy as np
import pytest
import theano
from theano import tensor as tt

PYTHON = theano.Mode("py", None)
BYTES = np.array([-128, -100, -7, -1, 0, 1, 2, 100, 127], "int8")
x, y = tt.bvector("x"), tt.bvector("y")
wide, real = tt.lvector("wide"), tt.dvector("real")
one = tt.bscalar("one")
row, column = tt.bmatrix("row"), tt.bmatrix("column")
BIG = tt.constant(2**60 + 1, dtype="int64")


def cast(variable, dtype="int64"):
    return tt.cast(variable, dtype)


PROGRAMS = {
    "a sum in a wider sum": (x + y) + wide,
    "a sum in a difference of floats": real - (x + y),
    "a product in a wider product": (x * y) * wide,
    "a product in a product of floats": (x * y) * real,
    "a product divided by a factor": (x * y) / tt.switch(tt.eq(x, 0), 1, x),
    "a negative unsigned integer times a float": (-cast(x, "uint64")) * real,
    "a wider term that cancels": (x + (y + wide)) - wide,
    "a wider zero": tt.add(x, y, np.int64(0)),
    "a wider one": tt.mul(x, y, np.int64(1)),
    "a wider minus one": tt.mul(x, np.int64(-1)),
    "a negative number in a wider product": tt.mul(-x, wide),
    "a large factor": wide * BIG,
    "two large factors": wide * BIG * 3,
    "a large factor in between": 3 * (BIG * (wide * 5)),
    "a factor of a sum": tt.sum(x * one),
    "a factor of a product": tt.prod(x[:3] * one),
    "a negative sum": tt.sum(-x),
    "a sum of narrow sums": tt.sum(tt.sum(tt.outer(x, y), axis=0, dtype="int8")),
    "a sum of a large constant": tt.sum(tt.alloc(tt.constant(2**60 + 1, dtype="uint64"), x.size)),
    "an absolute product": abs(x * y),
    "a product of absolutes": abs(x) * abs(y),
    "a quotient of absolutes": abs(x) / tt.maximum(abs(y), 1),
    "a minimum": tt.min(x),
    "a minimum along an axis": tt.min(tt.stack([x, y]), axis=0),
    "the index of a minimum": tt.argmin(x),
    "minus the maximum of negatives": -tt.max(-x),
    "minus the maximum of unsigned negatives": -tt.max(-cast(x, "uint8")),
    "a sum of quotients": (real / tt.switch(tt.eq(x, 0), 1, x) + y) * x,
    "a product of quotients": tt.prod(
        tt.outer(x, y) / tt.switch(tt.eq(x, 0), 1, x).dimshuffle(0, "x"), axis=1
    ),
    "a sum of quotients by one divisor": tt.sum(abs(wide) * 2**15 / real[3]),
    "a sum of integer sums": tt.sum(tt.sum(tt.outer(x, real + 0.2), axis=1, dtype="int64")),
    "an integer sum of a float": tt.sum(tt.alloc(2.5, x.size), dtype="int64"),
    "narrow sums of a number": tt.sum(tt.alloc(np.int64(2), x.size, 200), axis=0, dtype="int8"),
    "a reciprocal": np.float64(1) / tt.maximum(x, 1),
    "an angle": tt.deg2rad(tt.rad2deg(x)),
    "squares of products": tt.sqr(row.dimshuffle("x", 0, 1) * column.dimshuffle(0, "x", 1)).sum(
        axis=(1, 2)
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_equal_unoptimized_results(same_as_unoptimized, name):
    values = {
        x: BYTES,
        y: BYTES[[7, 8, 3, 0, 2, 1, 6, 7, 8]],
        wide: BYTES.astype("int64") * 2**40 + 12345,
        real: BYTES / 3.0,
        one: np.int8(-128),
        row: BYTES[:6].reshape(2, 3),
        column: BYTES[:6].reshape(2, 3),
    }
    same_as_unoptimized(PROGRAMS[name], values, {"float64": 1e-14, "float32": 1e-6})


@pytest.mark.parametrize("op", [tt.sum, tt.prod])
def test_a_reduction_to_another_type_is_optimized_without_an_error(op):
    factor = tt.dscalar()
    values = [1.5, 2.5, -3.7], 2.5
    with theano.configparser.change_flags(on_opt_error="raise"):
        for terms in (real * factor, real / factor, factor - real):
            outputs = op(terms, dtype="int64")
            modes = None, PYTHON
            actual, expected = (theano.function([real, factor], outputs, mode=m) for m in modes)
            assert actual(*values) == expected(*values)


def test_the_minimum_and_its_index_equal_numpys():
    for dtype in ("int8", "uint8", "int64", "uint64", "bool"):
        values = np.array([-(2**63), 0, 1, 2**63 - 1]).astype(dtype)
        vector = tt.vector(dtype=dtype)
        for mode in (None, PYTHON):
            function = theano.function([vector], [tt.min(vector), tt.argmin(vector)], mode=mode)
            assert function(values) == [values.min(), values.argmin()]


def test_a_minimum_is_one_reduction():
    function = theano.function([x], tt.min(x))
    (node,) = function.maker.fgraph.toposort()
    assert isinstance(node.op, tt.CAReduce)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_wrap_in_c(dtype):
    vector = tt.vector(dtype=dtype)
    outputs = [
        tt.gt(vector + 1, vector),
        tt.lt(vector - 1, vector),
        tt.eq((vector * 2) // 2, vector),
        tt.lt(abs(vector), 0),
    ]
    ends = np.iinfo(dtype)
    values = np.array([ends.min, -1, 3, ends.max], dtype)
    actual, expected = (theano.function([vector], outputs, mode=m)(values) for m in (None, PYTHON))
    np.testing.assert_array_equal(actual, expected)


def test_cumulative_sums_in_python_use_the_declared_type():
    for op in (tt.cumsum, tt.cumprod):
        result = theano.function([x], op(x), mode=PYTHON)(BYTES)
        assert result.dtype == "int8"
        np.testing.assert_array_equal(result, theano.function([x], op(x))(BYTES))


@pytest.mark.parametrize("other", ["int8", "uint64", "float32"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "uint64"])
def test_fused_loops_in_python_use_the_declared_types(dtype, other):
    """Each operation computes in its own type, not with Python's numbers."""
    first, second = tt.vector(dtype=dtype), tt.vector(dtype=other)
    outputs = [
        tt.eq(first + first + second, second),
        tt.lt(first * first * second, second + second),
        tt.switch(first > second, first + first, second * second),
        abs(first * first) + second,
        (first * first) / (1 + second),
    ]
    top = 1 if dtype == "bool" else np.iinfo(dtype).max
    arrays = np.array([top, top // 2 + 1, 0, 1], dtype), np.array([100, 3, 1, 0], other)
    modes = theano.Mode("py", "fast_run"), PYTHON
    actual, expected = (theano.function([first, second], outputs, mode=m)(*arrays) for m in modes)
    for result, unoptimized in zip(actual, expected, strict=True):
        assert result.dtype == unoptimized.dtype
        np.testing.assert_allclose(result, unoptimized, 1e-6)
