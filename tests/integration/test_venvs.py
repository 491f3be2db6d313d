"""Make virtual environments with the openblas environment's Python, and check their packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("options", [(), ("--system-site-packages",)])
def test_theano_in_a_virtual_environment_is_the_stacks(
    prefix: Path, run: Any, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Programs of the venv import the stack's Theano; pip refuses to replace the stack's NumPy."""
    venv = tmp_path / "a venv"
    created = run(prefix / "bin" / "python", "-m", "venv", *options, venv)
    assert created.returncode == 0, created.stderr
    output = run(venv / "bin" / "python", "-c", "import theano; print(theano.__file__)")
    assert output.stdout.startswith(str(prefix.resolve())), output.stderr
    assert "stack: openblas" in run(venv / "bin" / "theano-fast", "info").stdout
    assert run(venv / "bin" / "theano-fast", "doctor", "--quick").returncode == 0
    verified = run(venv / "bin" / "theano-fast", "verify", "--check", "packages", "hermetic")
    assert verified.returncode == 0, verified.stdout
    refused = run(venv / "bin" / "pip", "install", "--no-index", "--dry-run", "numpy>1.26.4")
    assert "numpy==1.26.4" in refused.stdout + refused.stderr


def test_a_virtual_environment_without_pip_has_no_packages(
    prefix: Path, run: Any, tmp_path: Path
) -> None:
    assert (
        run(prefix / "bin" / "python", "-m", "venv", "--without-pip", tmp_path / "v").returncode
        == 0
    )
    assert run(tmp_path / "v" / "bin" / "python", "-c", "import theano").returncode == 1


@pytest.mark.thorough
def test_doctor_reports_old_names(prefix: Path, run: Any, tmp_path: Path) -> None:
    """For a program that uses removed names and Python 2, doctor recommends `theano-fast port`."""
    program = tmp_path / "train.py"
    program.write_text("import theano.misc.pycuda_init\nimport cPickle\nprint 1\n")
    output = run(prefix / "bin" / "theano-fast", "doctor", "--quick", program)
    assert output.returncode == 1
    assert "theano.misc.pycuda_init" in output.stdout
    assert "theano-fast port" in output.stdout
