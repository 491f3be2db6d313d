"""The modules of a function are compiled several at once, from precompiled headers.

Without the patch, they were compiled one after another, each from the text of the headers.
"""

import shutil
from pathlib import Path

import pytest

FUNCTIONS = ("exp", "sin", "cos", "tanh", "log", "sqrt", "arctan", "cosh")
PROGRAM = f"""
import theano, theano.tensor as tt
x = tt.dvector()
function = theano.function([x], [getattr(tt, name)(x) for name in {FUNCTIONS}])
print([float(value[0]) for value in function([0.5])])
"""
BROKEN = """
import theano
class Broken(theano.gof.Op):
    __props__ = ("number",)
    def __init__(self, number): self.number = number
    def make_node(self, x): return theano.Apply(self, [x], [x.type()])
    def c_code(self, node, name, inputs, outputs, sub): return "nonsense;"
x = theano.tensor.dvector()
theano.function([x], [Broken(number)(x) for number in range(8)])
"""


@pytest.fixture
def compiler(tmp_path):
    """A g++ that writes down when it starts and ends, and its arguments."""
    file = tmp_path / "cxx"
    file.write_text(
        f'#!/bin/sh\necho start $$ "$@" >> {tmp_path}/log\n'
        f'{shutil.which("g++")} "$@"\nstatus=$?\n'
        f"echo end $$ >> {tmp_path}/log\nexit $status\n"
    )
    file.chmod(0o755)
    return file


@pytest.fixture
def temporary(tmp_path):
    directory = tmp_path / "temporary"
    directory.mkdir()
    return directory


def log(compiler):
    return Path(compiler.parent, "log").read_text().splitlines()


def most_at_once(lines):
    """The most modules that were compiled at once; not what Theano compiles for itself."""
    running, most = set(), 0
    for line in lines:
        what, process, *arguments = line.split()
        if what == "end":
            running.discard(process)
        elif "-O3" in arguments:
            running.add(process)
        most = max(most, len(running))
    return most


@pytest.mark.parametrize("jobs", [1, 3])
def test_as_many_at_once_as_asked_for(run_python, compiler, tmp_path, jobs):
    flags = f"cxx={compiler},base_compiledir={tmp_path}/compiled,cmodule.jobs={jobs}"
    result = run_python(PROGRAM, flags=flags)
    assert result.returncode == 0, result.stderr
    assert most_at_once(log(compiler)) == jobs


def test_headers_are_precompiled_once(run_python, compiler, tmp_path, temporary):
    flags = f"cxx={compiler},base_compiledir={tmp_path}/compiled"
    result = run_python(PROGRAM, flags=flags, TMPDIR=str(temporary))
    assert result.returncode == 0, result.stderr
    started = [line for line in log(compiler) if line.startswith("start")]
    assert sum("c++-header" in line for line in started) == 1
    assert sum("-include" in line for line in started) >= len(FUNCTIONS)
    assert list(temporary.iterdir()) == []


def test_an_error_of_the_compiler(run_python, tmp_path, temporary):
    flags = f"base_compiledir={tmp_path}/compiled"
    result = run_python(BROKEN, flags=flags, TMPDIR=str(temporary))
    assert result.returncode == 1
    assert "Compilation failed" in result.stderr
    assert "nonsense" in result.stderr
    (kept,) = temporary.iterdir()
    assert kept.name.startswith("theano_compilation_error")
