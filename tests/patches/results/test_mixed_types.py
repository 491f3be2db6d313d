"""results/mixed-types.patch: C code computes with operands of two types in their common type.

Without the patch, C converts the operands by its own rules. With a uint32, -4 becomes 4294967292.
With a float32, an int64 is rounded to 24 bits. Quotients of the smallest integer are computed from
its negative, which does not exist. A power of an int64 has the precision of a double.
"""

import numpy as np
import pytest
import theano
from theano import tensor as tt

C, PYTHON = theano.Mode("c", "fast_run"), theano.Mode("py", None)
PAIRS = (
    ("int32", "uint32"),
    ("uint32", "int8"),
    ("int64", "uint64"),
    ("uint64", "int32"),
    ("int64", "float32"),
    ("float32", "uint32"),
    ("int64", "int64"),
    ("uint64", "uint64"),
    ("int8", "int8"),
)
OPS = {
    "add": tt.add,
    "sub": tt.sub,
    "mul": tt.mul,
    "true_div": tt.true_div,
    "int_div": tt.int_div,
    "mod": tt.mod,
    "lt": tt.lt,
    "le": tt.le,
    "gt": tt.gt,
    "ge": tt.ge,
    "eq": tt.eq,
    "neq": tt.neq,
    "maximum": tt.maximum,
    "minimum": tt.minimum,
    "switch": lambda x, y: tt.switch(tt.gt(x, y), x, y),
    "clip to at least": lambda x, y: tt.clip(x, y, 100),
    "clip to at most": lambda x, y: tt.clip(x, -3, y),
    "pow": lambda x, y: x ** abs(y),
    "or": tt.or_,
    "xor": tt.xor,
    "and": tt.and_,
}


def make_values(dtype):
    """Return the extreme values of a dtype, and some small values."""
    if dtype.startswith("float"):
        return [-2.5, -1, 0.5, 3, 100]
    ends = np.iinfo(dtype)
    small = [number for number in (-3, -1, 1, 2, 3, 7, 100) if number >= ends.min]
    return [int(ends.min) or 5, *small, int(ends.max) - 1, int(ends.max)]


@pytest.mark.parametrize("name", OPS)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_c_results_equal_pythons_results(name):
    variables, arguments, outputs = [], [], []
    for one, other in PAIRS:
        if name in ("or", "xor", "and", "pow") and (
            "float" in one + other or "uint64" in one + other
        ):
            continue
        x, y = tt.vector(dtype=one), tt.vector(dtype=other)
        pairs = [(a, b) for a in make_values(one) for b in make_values(other)]
        if name == "pow":
            # The smallest integer has no absolute value.
            pairs = [(a, b) for a, b in pairs if abs(b) < 100]
        variables += [x, y]
        arguments += [
            np.array([pair[i] for pair in pairs], dtype) for i, dtype in enumerate((one, other))
        ]
        outputs.append(OPS[name](x, y))
    result = theano.function(variables, outputs, mode=C)(*arguments)
    expected = theano.function(variables, outputs, mode=PYTHON)(*arguments)
    for one, other in zip(result, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14 if one.dtype == "float64" else 1e-6)
        if one.dtype.kind != "f":
            assert np.array_equal(one, other)


def test_a_sum_with_an_integer_dtype_does_not_round_the_elements():
    """The elements are not cast to a dtype that cannot hold them, in C as in Python."""
    x = tt.fvector()
    total = tt.sum(x, dtype="int64")
    value = np.array([1, -0.25], "float32")
    assert theano.function([x], total)(value) == theano.function([x], total, mode=PYTHON)(value)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("name", ["int_div", "mod"])
def test_in_place_quotients_and_remainders_are_correct(name, dtype):
    """The C code reads both operands before it overwrites one of them."""
    x, y = (tt.vector(dtype=dtype) for _ in range(2))
    outputs = [OPS[name](x, tt.sort(y)), OPS[name](tt.sort(x), y)]
    function = theano.function([x, y], outputs)
    patterns = [
        dict(node.op.inplace_pattern)
        for node in function.maker.fgraph.toposort()
        if isinstance(node.op, tt.Elemwise)
    ]
    assert sorted(pattern[0] for pattern in patterns) == [0, 1]
    random, numbers = np.random.RandomState(0), np.array(make_values(dtype), dtype)
    arguments = [random.choice(numbers, 300) for _ in range(2)]
    expected = theano.function([x, y], outputs, mode=PYTHON)(*arguments)
    for one, other in zip(function(*arguments), expected, strict=True):
        assert np.array_equal(one, other)
