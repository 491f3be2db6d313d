"""Each test here fails when the patch of recipes/theano that its file is named after is left out.

They run in the interpreter of a built environment: they import theano, numpy and pytest only.
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


@pytest.fixture(scope="session")
def compiledir(tmp_path_factory):
    """A base_compiledir that holds nothing yet, so that what is tested is compiled."""
    return tmp_path_factory.mktemp("compiledir")


@pytest.fixture
def variables(tmp_path):
    """The environment of an interpreter that sees this Theano, an empty home and no settings."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(theano.__file__).parents[1]),
        "HOME": str(tmp_path),
    }


@pytest.fixture
def run_python(variables, compiledir):
    """Run code in a new interpreter; it has other tests' modules, and none of the environment."""

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
    """Run code as run_python does; the lines of a file, as strings, where g++ vectorised loops."""

    def run(code, flags="", file="mod.cpp"):
        notes = tmp_path / "notes"
        result = run_python(code, flags=f"gcc.cxxflags=-fopt-info-vec-optimized={notes},{flags}")
        assert result.returncode == 0, result.stderr
        told = rf"{re.escape(file)}:(\d+):\d+: optimized: +loop vectorized"
        return re.findall(told, notes.read_text())

    return run


@pytest.fixture
def start_python(variables):
    """Start code in new interpreters with open pipes; no modules are shipped; a test ends them."""
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

    What is given are values by variables, of which the output may read some; tolerances are
    relative ones by types, 0 of others.
    """

    def check(output, given, tolerances):
        read = theano.gof.graph.ancestors([output])
        used = [variable for variable in given if variable in read]
        modes = None, theano.Mode("py", None)
        optimized, plain = (theano.function(used, output, mode=mode) for mode in modes)
        arguments = [given[variable] for variable in used]
        found, expected = optimized(*arguments), plain(*arguments)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        tolerance = tolerances.get(str(found.dtype), 0)
        np.testing.assert_allclose(found, expected, rtol=tolerance)

    return check


@pytest.fixture
def thunk_of():
    """Make a node's C thunk: it, the lists of some of its inputs, and that of its output."""

    def make(inputs, output):
        node = output.owner
        storage = {variable: [getattr(variable, "data", None)] for variable in node.inputs}
        storage[output] = [None]
        computed = {variable: [False] for variable in storage}
        thunk = node.op.make_c_thunk(node, storage, computed, [])
        return thunk, [storage[variable] for variable in inputs], storage[output]

    return make
