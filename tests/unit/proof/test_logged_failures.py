"""Test the pytest plugin that fails a test if Theano logs the failure of an optimizer."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace

import pytest
from fail_on_logged import pytest_runtest_call

from conformance.logged_failures import LoggedFailures, get_optimizer_name

LOGGER = logging.getLogger("theano.gof.opt")


@pytest.fixture(autouse=True)
def config(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Replace Theano by a module that has only the flag on_opt_error; return its config."""
    config = SimpleNamespace(on_opt_error="warn")
    monkeypatch.setitem(sys.modules, "theano", SimpleNamespace(config=config))
    return config


def log_a_failure(optimizer: str) -> None:
    """Log the failure of an optimizer as Theano does."""
    try:
        raise ValueError("no such axis\nHINT: none")
    except ValueError:
        LOGGER.error("Optimization failure due to: %s", optimizer)
        LOGGER.error("node: %s", "Sum(x)")
        LOGGER.error("TRACEBACK:")


def test_a_line_names_the_optimizer_and_the_first_line_of_the_error() -> None:
    with LoggedFailures() as failures:
        log_a_failure("<local object at 0x7f00>")
    # This failure is not inside the with statement.
    log_a_failure("after")
    [line] = failures.lines
    assert line == "Optimization failure due to: <local> raised ValueError: no such axis"
    assert get_optimizer_name(line) == "Optimization failure due to: <local>"


def test_warnings_and_records_of_other_loggers_are_no_failures() -> None:
    with LoggedFailures() as failures:
        LOGGER.error("EquilibriumOptimizer max'ed out by 'local_add'. You can raise it")
        LOGGER.warning("Optimization failure due to: a warning")
        logging.getLogger("theano.gof.cmodule").error("SeqOptimizer apply x")
    assert [line.partition(".")[0] for line in failures.lines] == [
        "EquilibriumOptimizer max'ed out by 'local_add'"
    ]


def test_an_error_that_theano_also_raises_is_not_recorded(config: SimpleNamespace) -> None:
    config.on_opt_error = "raise"
    with LoggedFailures() as failures:
        log_a_failure("local")
    assert failures.lines == []


def test_the_plugin_fails_a_test_that_logs_a_failure() -> None:
    call = pytest_runtest_call(None)
    next(call)
    log_a_failure("local")
    with pytest.raises(pytest.fail.Exception, match="failed optimizers: Opt"):
        call.send(None)


def test_the_plugin_does_not_change_the_outcome_of_other_tests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = pytest_runtest_call(None)
    next(call)
    monkeypatch.setattr(LOGGER, "disabled", True)
    log_a_failure("local")
    with pytest.raises(StopIteration) as stop:
        call.send("result")
    assert stop.value.value == "result"
    call = pytest_runtest_call(None)
    next(call)
    with pytest.raises(ZeroDivisionError):
        call.throw(ZeroDivisionError())
