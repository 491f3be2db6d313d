"""port/scan-steps-in-c.patch runs the steps of a scan in C; the results equal the Python loop's.

Without the patch, Scan's C code does not compile on Python 3.11.
"""

import gc

import numpy as np
import pytest
import theano
from theano import tensor
from theano.scan_module import steps

SEQUENCE = np.random.RandomState(0).uniform(-1, 1, (9, 3))


@pytest.fixture(params=["C", "Python"])
def loop(request, monkeypatch):
    """Run the test twice: with the loop in C, and with the loop in Python."""
    ops = []
    make_run_steps = steps.make_run_steps

    def record_op(op):
        ops.append(op)
        return make_run_steps(op) if request.param == "C" else None

    monkeypatch.setattr(steps, "make_run_steps", record_op)
    yield request.param
    assert ops


def build_scan_with_gradient(sequence):
    """Return the outputs of a scan with states of one and two taps, and their gradients."""

    def step(x, before_last, before, last, weight):
        total = before_last + 0.5 * before + x * last
        return total, tensor.tanh(x + weight * last), x.sum()

    weight = theano.shared(0.3)
    initial = [{"initial": tensor.zeros((2, 3)), "taps": [-2, -1]}, tensor.ones((3,)), None]
    states, _ = theano.scan(step, sequence, initial, non_sequences=weight)
    loss = sum(state.sum() for state in states)
    return [*states, *theano.grad(loss, [sequence, weight])]


def compute_with_numpy(sequence):
    """Return the outputs of build_scan_with_gradient, without the gradients."""
    totals, last = [np.zeros(3), np.zeros(3)], np.ones(3)
    rows = []
    for x in sequence:
        totals.append(totals[-2] + 0.5 * totals[-1] + x * last)
        last = np.tanh(x + 0.3 * last)
        rows.append((totals[-1], last, x.sum()))
    return [np.array(column) for column in zip(*rows, strict=True)]


LAYOUTS = {
    "rows": lambda a: a,
    "columns": np.asfortranarray,
    "reversed": lambda a: a[::-1].copy()[::-1],
    "parts": lambda a: np.repeat(np.repeat(a, 2, axis=0), 3, axis=1)[::2, ::3],
    "one": lambda a: a[:1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_and_gradients_are_correct_for_any_layout(loop, layout):
    sequence = tensor.matrix()
    function = theano.function([sequence], build_scan_with_gradient(sequence))
    value = LAYOUTS[layout](SEQUENCE)
    for _ in range(2):
        result = function(value)
        for actual, expected in zip(result, compute_with_numpy(value), strict=False):
            np.testing.assert_allclose(actual, expected, rtol=1e-13)
    above, below = (
        sum(state.sum() for state in compute_with_numpy(value + delta)) for delta in (1e-6, -1e-6)
    )
    assert result[3].sum() == pytest.approx((above - below) / 2e-6, rel=1e-6)


def test_a_sequence_may_be_a_read_only_memory_map(loop, tmp_path):
    SEQUENCE.tofile(tmp_path / "sequence")
    value = np.memmap(tmp_path / "sequence", mode="r", shape=SEQUENCE.shape, dtype="float64")
    sequence = tensor.matrix()
    result = theano.function([sequence], build_scan_with_gradient(sequence))(value)
    np.testing.assert_allclose(result[1], compute_with_numpy(SEQUENCE)[1], rtol=1e-13)


def test_a_scan_ends_by_its_condition(loop):
    def step(x, total):
        return total + x, theano.scan_module.until(total + x > 10)

    values, _ = theano.scan(step, tensor.arange(100), tensor.zeros((), "int64"))
    assert theano.function([], values)().tolist() == [0, 1, 3, 6, 10, 15]


def test_each_step_updates_a_shared_variable(loop):
    counter = theano.shared(np.zeros(2))
    values, updates = theano.scan(lambda: (counter * 2, {counter: counter + 1}), n_steps=4)
    function = theano.function([], values, updates=updates)
    assert function()[:, 0].tolist() == [0, 2, 4, 6]
    assert function()[:, 1].tolist() == [8, 10, 12, 14]
    assert counter.get_value().tolist() == [8, 8]


class Keep(theano.Op):
    """An identity op that keeps a reference to each input."""

    __props__ = ()

    def __init__(self):
        self.kept, self.view_map = [], {0: [0]}

    def make_node(self, x):
        return theano.Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        self.kept.append(inputs[0])
        outputs[0][0] = inputs[0]


def test_arrays_that_an_op_keeps_stay_unchanged(loop):
    keep, sequence = Keep(), tensor.matrix()
    values, _ = theano.scan(lambda x, y: keep(x) + y[::-1], [sequence, sequence])
    function = theano.function([sequence], values)
    function(SEQUENCE)
    np.testing.assert_array_equal(keep.kept, SEQUENCE)
    gc.collect()
    np.testing.assert_array_equal(keep.kept, SEQUENCE)


def test_an_error_names_the_node(loop):
    sequence = tensor.matrix()
    values, _ = theano.scan(tensor.dot, [sequence, sequence[:, 1:]])
    with pytest.raises(
        ValueError, match=r"(?s)Shape mismatch.*Apply node that caused the error: CGemv"
    ):
        theano.function([sequence], values)(SEQUENCE)


def test_an_output_that_changes_its_shape_is_an_error(loop):
    values, _ = theano.scan(lambda n: tensor.ones((n,)), tensor.arange(1, 4))
    # Constant folding runs the scan and raises the error first; the flag ignores it.
    with theano.change_flags(on_opt_error="ignore"), pytest.raises(ValueError):
        theano.function([], values)()


def test_a_sequence_that_is_too_short_is_an_error(loop):
    sequence = tensor.matrix()
    values, _ = theano.scan(lambda x: x, sequence, n_steps=10)
    with pytest.raises(ValueError, match="shorter"):
        theano.function([sequence], values)(SEQUENCE)


@pytest.mark.parametrize("prealloc", [True, False])
def test_a_step_reads_taps_from_the_memory_that_it_overwrites(loop, prealloc):
    """Results are correct although an output's buffer holds only the steps that its taps read."""
    sequence = tensor.matrix()

    def step(x, one, three, last):
        return one + 2 * three + x, 3 * three - last, three[::-1] * one

    with theano.change_flags(**{"scan.allow_output_prealloc": prealloc}):
        initial = [{"initial": tensor.ones((3, 3)), "taps": [-1, -3]}, tensor.ones(3), None]
        outputs, _ = theano.scan(step, sequence, initial)
        function = theano.function([sequence], [output[-1] for output in outputs])
    states, last = [np.ones(3)] * 3, np.ones(3)
    for x in SEQUENCE:
        one, three = states[-1], states[-3]
        states.append(one + 2 * three + x)
        last = 3 * three - last
    for _ in range(2):
        for result, expected in zip(function(SEQUENCE), (states[-1], last), strict=False):
            np.testing.assert_allclose(result, expected, rtol=1e-13)
        np.testing.assert_allclose(function(SEQUENCE)[2], three[::-1] * one, rtol=1e-13)
