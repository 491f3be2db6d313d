"""Isolate unit tests from programs, the network and the user's cache."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from builder.common import paths


@pytest.fixture(autouse=True)
def isolate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fail a test that starts a program or opens a connection; replace cache and sources."""

    def refuse(*args: object, **_: object) -> NoReturn:
        raise AssertionError(
            f"a unit test must not start a program or open a connection: {args[1:2]}"
        )

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    # Without the builder's tools, a task would execute ./invoke, which installs them.
    monkeypatch.setattr("os.execvp", refuse)
    monkeypatch.setenv("THEANO_FAST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(paths, "SOURCES", tmp_path / "build" / "sources")


@pytest.fixture
def recipes_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the recipe directory of an empty project; the test must create the directory."""
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "RECIPES", tmp_path / "recipes")
    return tmp_path / "recipes"
