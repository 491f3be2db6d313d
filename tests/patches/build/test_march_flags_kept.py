"""What g++ makes of -march=native is asked once for each compile directory.

Without the patch, each process ran g++ three times, and what it had compiled.
"""

import json
import os

import pytest

PROGRAM = """
import json, subprocess
started = []
class Popen(subprocess.Popen):
    def __init__(self, command, *args, **kwargs):
        started.append(str(command))
        super().__init__(command, *args, **kwargs)
import theano
from theano.gof.cmodule import GCC_compiler
subprocess.Popen = Popen
arguments = [GCC_compiler.compile_args(), GCC_compiler.compile_args()]
print(json.dumps([len(started), *arguments]))
"""


@pytest.fixture
def ask(run_python, tmp_path):
    """Return how many processes were started for the arguments, and the arguments, twice."""

    def ask(prepare="", flags=""):
        done = run_python(prepare + PROGRAM, flags=f"compiledir={tmp_path}/compiled,{flags}")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask


def test_another_process_asks_nobody(ask):
    started, first, again = ask()
    assert started > 0
    assert any(argument.startswith("-march=") for argument in first)
    assert ask() == [0, first, first]
    assert again == first


OTHER_CPU = """
import builtins, io
def open_other(file, *args, open=open, **kwargs):
    if str(file) == "/proc/cpuinfo":
        return io.StringIO(open(file).read().replace("flags", "flags : other", 1))
    return open(file, *args, **kwargs)
builtins.open = io.open = open_other
"""


def test_another_cpu_asks_again(ask):
    ask()
    assert ask(OTHER_CPU)[0] > 0
    assert ask()[0] > 0


@pytest.mark.parametrize("content", ["", "{", "[]", "[1, 2]", '["a", ["-march=other"]]'])
def test_a_damaged_file_is_replaced(ask, tmp_path, content):
    _, first, _ = ask()
    (tmp_path / "compiled" / "march_flags.json").write_text(content)
    started, second, _ = ask()
    assert started > 0
    assert second == first
    assert ask()[0] == 0


def test_the_users_own_choice_is_left_alone(ask, tmp_path):
    started, arguments, _ = ask(flags="gcc.cxxflags=-march=x86-64-v2")
    assert started == 0
    assert [each for each in arguments if each.startswith("-march")] == ["-march=x86-64-v2"]
    assert not (tmp_path / "compiled" / "march_flags.json").exists()


def test_another_compiler_asks_again(ask, tmp_path):
    """Of the same name, or one that was replaced."""
    compiler = tmp_path / "g++"
    script = '#!/bin/sh\n# {}\nexec g++ "$@"\n'
    compiler.write_text(script.format("one"))
    compiler.chmod(0o755)
    assert ask(flags=f"cxx={compiler}")[0] > 0
    assert ask(flags=f"cxx={compiler}")[0] == 0
    assert ask()[0] > 0
    assert ask(flags=f"cxx={compiler}")[0] > 0
    compiler.write_text(script.format("other"))
    assert ask(flags=f"cxx={compiler}")[0] > 0
    status = compiler.stat()
    compiler.write_text(script.format("again"))
    os.utime(compiler, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert ask(flags=f"cxx={compiler}")[0] > 0
