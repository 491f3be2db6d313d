"""Fixtures for the tests of Theano's patches, which run in the Python of a built environment.

The docstring of a test file names a patch of recipes/theano/patches. Most tests of the file fail
without this patch. Outside of the standard library, the tests import only Theano, NumPy, SciPy and
pytest. A test also fails if Theano logs that an optimizer failed, unless the test silences the
logger theano.gof.opt.
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

# pytest applies this hook to all tests below this folder. The hook fails a test in which an
# optimizer failed.
from fail_on_logged import pytest_runtest_call  # noqa: F401


@pytest.fixture
def require_equal_results():
    """Return a function that requires equal results of a call for several numbers of threads.

    The call returns arrays. The default number of threads is restored after the test.
    """
    # Theano without a patch may lack these modules.
    from theano.tensor import thunks_ext  # noqa: PLC0415
    from theano.tensor.linkers import count_threads  # noqa: PLC0415

    def require(call, numbers=(1, 2, 5)):
        results_by_threads = []
        for threads in numbers:
            thunks_ext.set_threads(threads)
            results_by_threads.append(call())
        for results in results_by_threads[1:]:
            for result, expected in zip(results, results_by_threads[0], strict=True):
                assert np.array_equal(result, expected)

    yield require
    thunks_ext.set_threads(count_threads(os.environ))


@pytest.fixture(scope="session")
def compiledir(tmp_path_factory):
    """Return a base_compiledir that is empty when the session starts."""
    return tmp_path_factory.mktemp("compiledir")


@pytest.fixture
def base_environ(tmp_path):
    """Return environment variables with this Theano, an empty home and no Theano flags."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(theano.__file__).parents[1]),
        "HOME": str(tmp_path),
    }


@pytest.fixture
def run_python(base_environ, compiledir):
    """Return a function that runs code in a new interpreter.

    The processes of all tests share a compile cache. They use no shipped modules.
    """

    def run(code, *options, flags="", **environ):
        """Run code; return the finished process.

        Args:
            code: the source code.
            options: command-line options of Python.
            flags: THEANO_FLAGS, in addition to the compile cache's directory.
            environ: environment variables, in addition to ``base_environ``.
        """
        environ = {
            **base_environ,
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
def vectorized_lines(run_python, tmp_path):
    """Return a function that runs code and returns the line numbers of vectorized loops.

    The numbers are strings and refer to a file that g++ compiles: mod.cpp, the source of a module,
    or a header. g++ may report a line more than once.
    """

    def run(code, flags="", file="mod.cpp"):
        notes = tmp_path / "notes"
        result = run_python(code, flags=f"gcc.cxxflags=-fopt-info-vec-optimized={notes},{flags}")
        assert result.returncode == 0, result.stderr
        pattern = rf"{re.escape(file)}:(\d+):\d+: optimized: +loop vectorized"
        return re.findall(pattern, notes.read_text())

    return run


@pytest.fixture
def start_python(base_environ):
    """Return a function that starts a new interpreter with code, and returns the running process.

    The process uses no shipped modules. Pipes connect the test to the process. The process is
    killed when the test ends.
    """
    processes = []

    def start(code, *arguments, flags):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        environ = {**base_environ, "THEANO_FLAGS": f"cmodule.shipped=,{flags}"}
        command = [sys.executable, "-c", code, *arguments]
        processes.append(subprocess.Popen(command, env=environ, text=True, **pipes))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def record_calls(monkeypatch):
    """Return a function that makes a method record the objects on which it is called.

    The function returns the list of these objects.
    """

    def replace_method(owner, name):
        method, objects = getattr(owner, name), []

        def record(self, *args, **kwargs):
            objects.append(self)
            return method(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, record)
        return objects

    return replace_method


@pytest.fixture
def same_as_unoptimized():
    """Return a function that checks that optimization does not change an output."""

    def check(output, inputs, tolerances):
        """Compare the output's type, shape and elements with unoptimized Python code's result.

        Args:
            output: the variable to compute.
            inputs: maps variables to values. Variables that the output does not need are ignored.
            tolerances: maps a dtype to the largest relative error. Elements of other dtypes must
                be equal.
        """
        ancestors = set(theano.gof.graph.ancestors([output]))
        used = [variable for variable in inputs if variable in ancestors]
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
    """Return a function that makes the C thunk of the node that computes an output.

    A storage is a list of one element: the value of a variable, or None.
    """

    def make(inputs, output):
        """Return the thunk, the storages of the inputs, and the storage of the output."""
        node = output.owner
        storage = {variable: [getattr(variable, "data", None)] for variable in node.inputs}
        storage[output] = [None]
        computed = {variable: [False] for variable in storage}
        thunk = node.op.make_c_thunk(node, storage, computed, [])
        return thunk, [storage[variable] for variable in inputs], storage[output]

    return make
