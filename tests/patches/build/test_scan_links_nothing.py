"""build/inner-functions-ahead.patch: `theano.scan` only builds a graph and makes no thunks.

Without the patch, it makes thunks for the graph of the steps, which nobody calls. If the graph
contains a Scan, the thunks need compiled C code.
"""

import numpy as np
import pytest
import theano
import theano.tensor as tt


@pytest.fixture
def no_thunks(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a thunk was made")

    for op in (theano.gof.Op, theano.scan_module.scan_op.Scan):
        monkeypatch.setattr(op, "make_thunk", refuse)


def power(x, steps=3):
    results, _ = theano.scan(lambda last: last * x, outputs_info=x, n_steps=steps)
    return results[-1]


def test_theano_scan_makes_no_thunks(no_thunks):
    x = tt.dvector()
    theano.scan(power, outputs_info=x, n_steps=2)
    # Constant folding makes a thunk and gets the error. With "ignore", Theano does not log it, but
    # an AssertionError ends the optimization anyway.
    with (
        theano.configparser.change_flags(on_opt_error="ignore"),
        pytest.raises(AssertionError, match="a thunk"),
    ):
        theano.function([x], power(x))


def test_theano_scan_finds_shared_variables():
    x, factor = tt.dvector(), theano.shared(2.0)
    count = theano.shared(0)
    results, updates = theano.scan(
        lambda last: (last * factor, {count: count + 1}), outputs_info=x, n_steps=3
    )
    function = theano.function([x], results, updates=updates)
    assert np.array_equal(function([1.0]), [[2.0], [4.0], [8.0]])
    assert count.get_value() == 3
