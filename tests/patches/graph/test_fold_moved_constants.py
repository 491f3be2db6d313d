"""graph/compare-scalar-constants.patch folds constants in Python, with the same bits as C code.

Without the patch, constant folding compiles a C module for each op. The patch applies to ops that
only move elements, and to ops that round once.
"""

import numpy as np
import pytest
import theano
import theano.tensor as tt
from theano.tensor.opt import constant_folding

NUMBERS = np.arange(6, dtype="int8").reshape(2, 3)
LARGE = np.float32([3e38, 1e-38])
FOLDED = {
    "Add": lambda: tt.constant(LARGE) + tt.constant(LARGE),
    "Mul": lambda: tt.constant(LARGE) * tt.constant(LARGE),
    "Sub": lambda: tt.constant(NUMBERS) - tt.constant(NUMBERS + 100),
    "Cast": lambda: tt.cast(tt.constant(NUMBERS), "float64"),
    "DimShuffle": lambda: tt.constant(NUMBERS).dimshuffle(1, "x", 0),
    "Join": lambda: tt.join(0, tt.constant(NUMBERS), tt.constant(NUMBERS)),
    "MakeVector": lambda: tt.stack([tt.constant(1), tt.constant(2)]),
    "Reshape": lambda: tt.constant(NUMBERS).reshape((3, 2)),
    "ScalarFromTensor": lambda: tt.scalar_from_tensor(tt.constant(3)),
    "Shape": lambda: tt.constant(NUMBERS).shape,
    "Subtensor": lambda: tt.constant(NUMBERS)[1, ::-1],
}


@pytest.fixture
def no_compiler(monkeypatch):
    def refuse(*_):
        raise AssertionError("a C thunk was requested")

    monkeypatch.setattr(theano.gof.Op, "make_c_thunk", refuse)


@pytest.mark.parametrize("build", [*FOLDED.values()], ids=FOLDED)
@pytest.mark.filterwarnings("error")
def test_constants_are_folded_in_python(build, no_compiler):
    (constant,) = constant_folding.transform(build().owner)
    assert isinstance(constant, theano.Constant)


@pytest.mark.parametrize("build", [*FOLDED.values()], ids=FOLDED)
def test_folded_constants_equal_c_results(build, monkeypatch):
    (folded,) = constant_folding.transform(build().owner)
    monkeypatch.setattr(theano.tensor.opt, "moving_ops", ())
    monkeypatch.setattr(tt.Elemwise, "python_constant_folding", lambda *_: False)
    (compiled,) = constant_folding.transform(build().owner)
    assert folded.type == compiled.type
    assert np.array_equal(folded.data, compiled.data)


def test_lossy_casts_are_folded_in_c():
    cast = tt.cast(tt.constant([1.5, 2.5]), "int8").owner
    assert not cast.op.python_constant_folding(cast)


def test_ops_that_round_twice_are_folded_in_c():
    total = tt.add(*[tt.constant(LARGE)] * 3).owner
    assert not total.op.python_constant_folding(total)


def make_extremes(dtype):
    """Return numbers that are rounded, overflow or are nan, and zeros of both signs."""
    if np.dtype(dtype).kind == "f":
        ends = np.finfo(dtype)
        return np.array(
            [0.0, -0.0, np.nan, np.inf, -np.inf, ends.max, ends.tiny, -ends.tiny / 3, 0.1],
            dtype,
        )
    ends = np.iinfo(dtype)
    near = [2**53 + 1, 2**53 + 3, 2**63 - 513, 2**64 - 1025, ends.max - 1, ends.min + 1]
    return np.array(
        [0, 1, ends.max, ends.min, *(x for x in near if ends.min <= x <= ends.max)], dtype
    )


DTYPES = ("int8", "uint8", "int32", "int64", "uint64", "float32", "float64")
# Pairs of dtypes; the second dtype can hold all values of the first.
WIDER = [
    (one, other) for one in (*DTYPES, "float16") for other in DTYPES if np.can_cast(one, other)
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_folded_extremes_equal_c_results(monkeypatch):
    """Sums, differences, products and casts equal C's to the last bit, except for nan's payload."""
    nodes = [
        op(tt.constant(x.ravel()), tt.constant(y.ravel())).owner
        for dtype in DTYPES
        for x, y in [np.meshgrid(make_extremes(dtype), make_extremes(dtype))]
        for op in (tt.add, tt.sub, tt.mul)
    ]
    nodes += [
        tt.Elemwise(getattr(theano.scalar, f"convert_to_{other}"))(
            tt.constant(make_extremes(one))
        ).owner
        for one, other in WIDER
    ]
    assert all(node.op.python_constant_folding(node) for node in nodes)
    folded = [constant_folding.transform(node)[0] for node in nodes]
    monkeypatch.setattr(tt.Elemwise, "python_constant_folding", lambda *_: False)
    for node, constant in zip(nodes, folded, strict=True):
        (compiled,) = constant_folding.transform(node)
        assert constant.type == compiled.type
        actual, expected = constant.data, compiled.data
        same = (actual == expected) & (np.signbit(actual) == np.signbit(expected))
        assert np.all(same | (np.isnan(actual) & np.isnan(expected))), node
