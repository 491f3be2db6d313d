"""Test the description of the compiledir; Theano is fake."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace as Made

import pytest


@pytest.fixture
def probe(monkeypatch):
    """Import the module without Theano and the stack's libraries; return it."""
    fakes = {"theano": Made(configparser=None), "theano_fast.environment": Made()}
    for name in (*fakes, "theano_fast.probe"):
        monkeypatch.setitem(sys.modules, name, fakes.get(name))
    # setitem removes the module at the end of the test.
    del sys.modules["theano_fast.probe"]
    return importlib.import_module("theano_fast.probe")


def test_files_that_a_program_removes_do_not_stop_the_probe(probe, tmp_path, monkeypatch):
    for name in ("kept", "removed later", "removed earlier"):
        (tmp_path / name).write_bytes(b"123")
    stat = Path.stat

    def stat_and_remove(path, **options):
        if path.name == "removed earlier":
            path.unlink(missing_ok=True)
        result = stat(path, **options)
        if path.name == "removed later":
            path.unlink()
        return result

    monkeypatch.setattr(Path, "stat", stat_and_remove)
    described = probe.probe_cache(tmp_path)
    assert (described["files"], described["bytes"]) == (2, 6)
