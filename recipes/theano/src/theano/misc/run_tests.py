"""Run Theano's own tests by pytest."""

from __future__ import annotations

from importlib.util import find_spec

import theano


def run_tests(*arguments: str) -> int:
    """Run Theano's own tests, or the given files, with pytest.

    Args:
        arguments: arguments of pytest. By default, all tests of Theano run.

    Returns:
        The exit status of pytest.

    Raises:
        ImportError: packages that the tests need are not installed.
    """
    missing = [name for name in ("pytest", "parameterized") if find_spec(name) is None]
    if not arguments and find_spec("theano.gof.tests") is None:
        missing.append("theano-tests")
    if missing:
        raise ImportError(
            f"theano.test() needs packages that are not installed: {', '.join(missing)}"
        )
    import pytest  # noqa: PLC0415 (only Theano's own tests need it)

    # pytest recognizes only one of the four naming schemes of Theano's test classes.
    classes = "python_classes=Test* test_* T_* *Test"
    return pytest.main(["-o", classes, *(arguments or theano.__path__)])
