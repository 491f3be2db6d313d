"""What g++ makes of -march=native is found out while the first graph is optimized.

Without the patch, the graph was optimized before g++ was asked.
"""

import pytest

PROGRAM = """
import theano, theano.tensor as tt
from theano.compile import function_module
from theano.gof import march
from theano.gof.cmodule import GCC_compiler

def noting(*args, original=function_module.add_features):
    print(march.detection is not None)
    return original(*args)
function_module.add_features = noting
x = tt.dvector()
print(theano.function([x], tt.exp(x) * {number})([0.0]))
if theano.config.cxx:
    print(sum(flag.startswith("-march=") for flag in GCC_compiler.compile_args()))
"""


@pytest.fixture
def run(run_python, tmp_path):
    """Return what is printed: whether g++ is asked, the result, with g++ the number of -march=."""

    def run(number, flags=""):
        flags = f"base_compiledir={tmp_path},{flags}"
        done = run_python(PROGRAM.format(number=number), flags=flags)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return run


def test_asked_once_and_ahead(run):
    assert run(2) == ["True", "[2.]", "1"]
    assert run(3) == ["False", "[3.]", "1"]


def test_nothing_is_asked_without_a_compiler(run):
    assert run(2, "cxx=") == ["False", "[2.]"]


def test_an_error_is_raised_where_the_flags_are_needed(run_python, tmp_path):
    flags = f"base_compiledir={tmp_path},gcc.cxxflags=-fopenmp"
    done = run_python(PROGRAM.format(number=2), flags=flags)
    assert done.returncode == 1
    assert done.stderr.count("ValueError: ") == 1
    assert "Do not use -fopenmp" in done.stderr
    assert "Thread-" not in done.stderr
