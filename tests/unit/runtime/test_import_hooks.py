"""Test the import hook that runs an action on a module after the module's code."""

import importlib.util

import pytest
from theano_fast import import_hooks


def test_the_action_runs_once_after_the_modules_code(monkeypatch, tmp_path):
    (tmp_path / "hooked.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    values = []
    spec = import_hooks.find_spec_and_run("hooked", lambda module: values.append(module.value))
    assert values == []
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert values == [1]


def test_a_missing_module_has_no_spec():
    assert import_hooks.find_spec_and_run("theano_fast_missing", pytest.fail) is None
