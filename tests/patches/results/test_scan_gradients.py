"""results/scan-gradients.patch corrects gradients of scans, and the merging of scans.

Without the patch, the gradient of a scan with `until` is shifted. Second derivatives of scans with
two taps are wrong, and higher derivatives raise an error. A scan with `until` may stop at another
scan's condition. Merged scans may depend on each other, so that compilation never ends. A scan of
one step with go_backwards reads the first element instead of the last.
"""

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.scan_module import until

EPSILON = 1e-6


def compute_finite_differences(function, values):
    """Return the derivative of a function's first output with respect to each value."""
    steps = EPSILON * np.eye(len(values))
    pairs = [(function(values + step)[0], function(values - step)[0]) for step in steps]
    return [(right - left) / (2 * EPSILON) for right, left in pairs]


@pytest.mark.parametrize("reduction", ["last", "sum"])
def test_the_gradient_of_a_scan_with_until_equals_finite_differences(reduction):
    x = tt.dvector()
    outputs, _ = theano.scan(
        lambda a, h: (h * 1.5 + a**2, until(h > 5)), sequences=x, outputs_info=np.float64(1)
    )
    cost = outputs[-1] if reduction == "last" else outputs.sum()
    function = theano.function([x], [cost, tt.grad(cost, x)])
    values = np.array([1.5, 2, 1.2, 2.5, 3, 4])
    np.testing.assert_allclose(
        function(values)[1], compute_finite_differences(function, values), atol=1e-5
    )


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("taps", [1, 2])
def test_derivatives_of_order_1_to_3_are_correct(taps, order):
    """The scan computes x ** 8, with one tap and with two taps."""
    x = tt.dscalar()
    if taps == 1:
        outputs, _ = theano.scan(lambda a: a**2, outputs_info=[x], n_steps=3)
    else:
        first = {"initial": tt.stack([x, x**2]), "taps": [-2, -1]}
        outputs, _ = theano.scan(lambda a, b: a * b, outputs_info=[first], n_steps=3)
    power, derivative, expected = 8, outputs[-1], 1.0
    for _ in range(order):
        derivative = tt.grad(derivative, x)
        expected *= power
        power -= 1
    slope = theano.function([x], derivative)(0.95)
    np.testing.assert_allclose(slope, expected * 0.95**power)


def test_the_hessian_of_a_scan_with_two_taps_equals_finite_differences():
    x = tt.dvector()
    outputs, _ = theano.scan(
        lambda a, b: a * b + a, outputs_info=[{"initial": x, "taps": [-2, -1]}], n_steps=3
    )
    function = theano.function([x], theano.gradient.hessian(outputs[-1], x))
    slope = theano.function([x], [tt.grad(outputs[-1], x)])
    values = np.array([0.5, 0.75])
    np.testing.assert_allclose(
        function(values), compute_finite_differences(slope, values), atol=1e-5
    )


def test_each_scan_stops_at_its_own_condition():
    x, y, most, least = tt.dvector(), tt.dvector(), tt.dscalar(), tt.dscalar()

    def scan(sequence, threshold):
        states, _ = theano.scan(
            lambda a, h, t: (h + a, until(h + a > t)),
            sequences=sequence,
            outputs_info=np.float64(0),
            non_sequences=threshold,
        )
        return states

    outputs = [scan(x, most), scan(x, least), scan(y, most)]
    results = theano.function([x, y, most, least], outputs)(np.ones(8), np.full(8, 3.0), 4, 1)
    assert [list(row) for row in results] == [[1, 2, 3, 4, 5], [1, 2], [3, 6]]


def test_scans_with_equal_conditions_are_merged():
    x = tt.dvector()
    outputs = [
        theano.scan(
            lambda a, h, factor=factor: ([h + a, a * factor], until(h + a > 4)),
            sequences=x,
            outputs_info=[np.float64(0), None],
        )[0][1]
        for factor in (2, 3)
    ]
    function = theano.function([x], outputs)
    nodes = function.maker.fgraph.apply_nodes
    assert sum(isinstance(node.op, theano.scan_module.scan_op.Scan) for node in nodes) == 1
    assert [list(row) for row in function(np.ones(8))] == [[2] * 5, [3] * 5]


def test_merged_scans_do_not_depend_on_each_other(run_python):
    """Four scans have correct results, although two pairs of them could be merged.

    The test uses a process with a time limit, because sorting a wrong graph may never end.
    """
    completed = run_python(
        """
        import numpy as np, signal, theano, theano.tensor as T
        signal.alarm(100)
        x = T.dvector()
        def scan(step, steps, **arguments):
            return theano.scan(step, n_steps=steps, **arguments)[0]
        one = scan(lambda p: .9 * p + 1., 15, outputs_info=[x])
        other = scan(lambda p: .8 * p + .5, 14, outputs_info=[x])
        states = T.concatenate([x[None, :], other])
        third = scan(lambda s, p: .5 * p + s, 15, sequences=[states], outputs_info=[x])
        fourth = scan(lambda s, p: .3 * p + s, 14, sequences=[one[:14]], outputs_info=[x])
        outputs = [third[-1], fourth[-1]]
        f, g = (theano.function([x], outputs, mode=m) for m in (None, theano.Mode("py", None)))
        np.testing.assert_allclose(f([1., 2.]), g([1., 2.]))
        """
    )
    assert completed.returncode == 0, completed.stderr


@pytest.mark.parametrize("taps", [[0], [-1, 0], [0, 1], [-2], [2, 1]])
def test_a_single_backward_step_reads_the_last_elements(taps):
    x = tt.dvector()
    sequence = {"input": x, "taps": taps}
    one_step, two_steps = (
        theano.scan(lambda *a: tt.stack(a), sequences=sequence, n_steps=n, go_backwards=True)[0]
        for n in (1, 2)
    )
    actual, expected = theano.function([x], [one_step, two_steps[:1]])(np.arange(5.0))
    np.testing.assert_array_equal(actual, expected)
