"""Fixtures for the tests of patches, which run in the interpreter of a built environment.

Most tests fail without the patch of recipes/theano that their file's docstring names. They import
theano, numpy and pytest only. A test fails if an optimizer fails, unless it silences the logger.
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import theano

# pytest runs the hooks of a conftest.py for the tests below its folder.
from fail_on_logged import pytest_runtest_call  # noqa: F401


@pytest.fixture(scope="session")
def compiledir(tmp_path_factory):
    """Use an empty base_compiledir, so that modules are compiled."""
    return tmp_path_factory.mktemp("compiledir")


@pytest.fixture
def variables(tmp_path):
    """Return an environ with this Theano, an empty home and no settings."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(theano.__file__).parents[1]),
        "HOME": str(tmp_path),
    }


@pytest.fixture
def run_python(variables, compiledir):
    """Run code in a new interpreter, with other tests' modules but without shipped modules."""

    def run(code, *options, flags="", **environ):
        environ = {
            **variables,
            "THEANO_FLAGS": f"base_compiledir={compiledir},cmodule.shipped=,{flags}",
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


@pytest.fixture
def vectorised(run_python, tmp_path):
    """Run code like run_python; return the lines of a file in which g++ vectorised loops."""

    def run(code, flags="", file="mod.cpp"):
        notes = tmp_path / "notes"
        result = run_python(code, flags=f"gcc.cxxflags=-fopt-info-vec-optimized={notes},{flags}")
        assert result.returncode == 0, result.stderr
        pattern = rf"{re.escape(file)}:(\d+):\d+: optimized: +loop vectorized"
        return re.findall(pattern, notes.read_text())

    return run


@pytest.fixture
def start_python(variables):
    """Start code in new interpreters with pipes, without shipped modules, until the test ends."""
    processes = []

    def start(code, *arguments, flags):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        environ = {**variables, "THEANO_FLAGS": f"cmodule.shipped=,{flags}"}
        command = [sys.executable, "-c", code, *arguments]
        processes.append(subprocess.Popen(command, env=environ, text=True, **pipes))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def same_as_unoptimized():
    """Check that optimization does not change an output: its type, shape and elements.

    Inputs map variables to values; the output may read only some of them. Tolerances map types to
    relative errors; other types must be equal.
    """

    def check(output, inputs, tolerances):
        read = theano.gof.graph.ancestors([output])
        used = [variable for variable in inputs if variable in read]
        modes = None, theano.Mode("py", None)
        optimized, plain = (theano.function(used, output, mode=mode) for mode in modes)
        arguments = [inputs[variable] for variable in used]
        actual, expected = optimized(*arguments), plain(*arguments)
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        tolerance = tolerances.get(str(actual.dtype), 0)
        np.testing.assert_allclose(actual, expected, rtol=tolerance)

    return check


@pytest.fixture
def thunk_of():
    """Make a node's C thunk; return it, the storage of some inputs and the output's storage."""

    def make(inputs, output):
        node = output.owner
        storage = {variable: [getattr(variable, "data", None)] for variable in node.inputs}
        storage[output] = [None]
        computed = {variable: [False] for variable in storage}
        thunk = node.op.make_c_thunk(node, storage, computed, [])
        return thunk, [storage[variable] for variable in inputs], storage[output]

    return make
