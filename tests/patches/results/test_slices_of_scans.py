"""results/slices-of-scans.patch: slices are correct although a Scan stores few steps.

Theano stores only the steps that the graph reads. Without the patch, an empty slice raises
IndexError, and an index before the first element selects another element. If an optimizer replaces
equal initial values by one value, the others are lost.
"""

import random

import numpy as np
import pytest
import theano
from theano import tensor as tt

PYTHON = theano.Mode("py", None)
X, AT = tt.vector(), tt.lscalar()
SLICES = (
    lambda h: h[AT:],
    lambda h: h[AT:][:2],
    lambda h: h[:2][AT:],
    lambda h: h[AT],
    lambda h: h[:AT],
    lambda h: h[AT::-1],
    lambda h: h[::-1][AT:],
    lambda h: h[AT::2],
    lambda h: h[AT : AT + 1],
    lambda h: h[-1],
    lambda h: h[-2],
    lambda h: h[-2:],
    lambda h: h[3:1],
    lambda h: h[:1],
    lambda h: h[:-1],
    lambda h: h[::2],
)


def make_outputs(until):
    """Return a scan's outputs: with one tap, without taps, and with two taps."""

    def step(a, p, q1, q2):
        values = [a + p, a * 2, q1 + q2 + a]
        return (values, theano.scan_module.until(tt.gt(a, 2))) if until else values

    two = {"initial": tt.ones(2, X.dtype), "taps": [-1, -2]}
    return theano.scan(step, X, [tt.constant(0, dtype=X.dtype), None, two])[0]


def call_or_none(function, *arguments):
    """Call a function; return its results, or None if it raises IndexError or ValueError."""
    try:
        return function(*arguments)
    except (IndexError, ValueError):
        return None


@pytest.mark.parametrize("seed", range(12))
def test_slices_equal_slices_of_all_steps(seed):
    rng = random.Random(seed)
    scanned = make_outputs(until=seed % 2)
    outputs = [rng.choice(SLICES)(rng.choice(scanned)) for _ in range(rng.choice((1, 2, 3)))]
    with theano.configparser.change_flags(on_opt_error="raise"):
        function = theano.function([X, AT], outputs, on_unused_input="ignore")
    plain = theano.function([X, AT], outputs, mode=PYTHON, on_unused_input="ignore")
    for length in (1, 2, 3, 5):
        x = np.arange(length).astype(X.dtype)
        for i in (0, 1, 3, 5, -1, -2, -7, 2**63 - 1, -(2**63)):
            actual, expected = call_or_none(function, x, i), call_or_none(plain, x, i)
            assert (actual is None) == (expected is None)
            for one, other in zip(actual or (), expected or (), strict=True):
                assert np.array_equal(one, other)


def test_outputs_are_not_exchanged_when_others_are_removed():
    outputs, _ = theano.scan(
        lambda a, p: [a + p, a + 1, a + 10, a + 100],
        X,
        [tt.constant(0, dtype=X.dtype), *[None] * 3],
    )
    with theano.configparser.change_flags(on_opt_error="raise"):
        function = theano.function([X], [outputs[2][:2], outputs[3][:1]])
    x = np.arange(5).astype(X.dtype)
    for actual, expected in zip(function(x), (x[:2] + 10, x[:1] + 100), strict=True):
        assert np.array_equal(actual, expected)


@pytest.mark.parametrize("initial", [tt.zeros(3), tt.zeros((3, 2)), tt.row() * tt.ones((3, 1))])
def test_equal_initial_values_are_all_kept(initial):
    states, _ = theano.scan(
        lambda a, b: a + b + 1,
        outputs_info=[{"initial": initial, "taps": [-1, -3]}],
        n_steps=4,
    )
    inputs = [variable for variable in theano.gof.graph.inputs([initial]) if variable.owner is None]
    inputs = [variable for variable in inputs if not isinstance(variable, theano.Constant)]
    with theano.configparser.change_flags(on_opt_error="raise"):
        function = theano.function(inputs, states[-1])
    arguments = [np.ones((1, 2), variable.dtype) for variable in inputs]
    # The three initial values are ones if the initial state has an input, otherwise zeros. Each
    # step adds 1 to the sum of the last value and the value three steps ago.
    first = len(inputs)
    values = [first] * 3
    for _ in range(4):
        values.append(values[-1] + values[-3] + 1)
    assert np.all(function(*arguments) == values[-1])


@pytest.mark.parametrize("linker", ["cvm", "c|py"])
@pytest.mark.parametrize("index", [2**32, -(2**32), 2**32 - 1, -(2**63) + 1])
def test_an_index_beyond_32_bits_is_out_of_range(linker, index):
    for output in (X[AT], tt.set_subtensor(X[AT], 1)):
        function = theano.function([X, AT], output, mode=theano.Mode(linker, "fast_run"))
        with pytest.raises(IndexError):
            function(np.zeros(3, X.dtype), index)
