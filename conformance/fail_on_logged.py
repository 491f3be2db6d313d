"""Fail each test in which Theano logs a failed optimizer: a pytest plugin.

A test that expects a failure silences the logger ``theano.gof.opt``, like some of Theano's tests.
The plugin does not observe programs that a test starts. It runs on CPython 3.9 too.
"""

import pytest
from logged_failures import LoggedFailures


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Run a test; fail it if it passed but an optimizer failed."""
    with LoggedFailures() as failures:
        result = yield
    if failures.lines:
        pytest.fail(f"failed optimizers: {'; '.join(failures.lines)}", pytrace=False)
    return result
