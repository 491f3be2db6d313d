"""Each test here fails when the patch of recipes/theano that its file is named after is left out.

They run in the interpreter of a built environment: they import theano, numpy and pytest only.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import theano


@pytest.fixture(scope="session")
def compiledir(tmp_path_factory):
    """A base_compiledir that holds nothing yet, so that what is tested is compiled."""
    return tmp_path_factory.mktemp("compiledir")


@pytest.fixture
def run_python(tmp_path, compiledir):
    """Run code in a new interpreter that sees this Theano, an empty home and no user's settings."""

    def run(code, *options, flags="", **environ):
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(theano.__file__).parents[1]),
            "HOME": str(tmp_path),
            "THEANO_FLAGS": f"base_compiledir={compiledir},{flags}",
            **environ,
        }
        return subprocess.run(
            [sys.executable, *options, "-c", textwrap.dedent(code)],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    return run
