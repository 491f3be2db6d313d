"""Fail a test if one of Theano's optimizers logs an error during the test."""

# The imported name is a hook: pytest calls it for each test below this folder.
from fail_on_logged import pytest_runtest_call  # noqa: F401
