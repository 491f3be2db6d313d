"""Fail the test of a program if an optimizer failed."""

# pytest runs the hooks of a conftest.py for the tests below its folder.
from fail_on_logged import pytest_runtest_call  # noqa: F401
