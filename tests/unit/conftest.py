"""Fail a unit test that starts a program or opens a connection: it must not build or download."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from builder.common import paths


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*args: object, **_: object) -> NoReturn:
        raise AssertionError(f"a unit test must not build or download: {args[1:2]}")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    # A task without its tools would start ./invoke, which installs them.
    monkeypatch.setattr("os.execvp", refuse)
    monkeypatch.setenv("THEANO_FAST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(paths, "SOURCES", tmp_path / "build" / "sources")


@pytest.fixture
def recipes_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make an empty project whose recipes a test writes."""
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "RECIPES", tmp_path / "recipes")
    return tmp_path / "recipes"
