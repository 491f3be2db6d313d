"""results/scan-gradients.patch optimizes a scan with `until` whose steps read no sequences.

Without the patch, an optimizer logs an IndexError and changes nothing.
"""

import pytest
import theano
from theano import tensor as tt


@pytest.mark.parametrize(("threshold", "steps"), [(2, 1), (8, 5)])
def test_a_condition_that_depends_on_inputs_ends_the_scan(threshold, steps):
    x, limit = tt.dscalar("x"), tt.dscalar("limit")
    scanned, _ = theano.scan(
        lambda x, limit: (x * 2, theano.scan_module.until(x > limit)),
        non_sequences=[x, limit],
        n_steps=5,
    )
    with theano.configparser.change_flags(on_opt_error="raise"):
        function = theano.function([x, limit], scanned)
    assert function(3, threshold).tolist() == [6] * steps


@pytest.mark.parametrize(("stop", "steps"), [(1, 1), (0, 5)])
def test_a_condition_that_is_an_input_ends_the_scan(stop, steps):
    """The optimizer must not assume that the scan runs n_steps steps."""
    x, condition = tt.dscalar("x"), tt.bscalar("condition")
    scanned, _ = theano.scan(
        lambda x, condition: (x * 2, theano.scan_module.until(condition)),
        non_sequences=[x, condition],
        n_steps=5,
    )
    with theano.configparser.change_flags(on_opt_error="raise"):
        function = theano.function([x, condition], scanned)
    assert function(3, stop).tolist() == [6] * steps
