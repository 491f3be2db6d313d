"""Modules are found that came compiled with the environment, and only where they would be the same.

Without the patch, g++ compiled the modules of Dot22 and Softmax for each compile directory.
"""

import json

import pytest
import theano
from theano.gof import shipped

LEVEL = "x86-64-v3"
WRITE = f"""
import os, sys
from theano import config, tensor
from theano.gof import shipped
x, y = tensor.fmatrices("xy")
nodes = [output.owner for output in (tensor.blas._dot22(x, y), tensor.nnet.softmax_op(x))]
shipped.write([node.op.c_linker(node, []) for node in nodes], "{LEVEL}", config.cmodule.shipped)
"""
# It tells the files of the modules that a product is computed with, and the product.
USE = """
import json
import theano
from theano import tensor
from theano.gof import cc
x, y = tensor.fmatrices("xy")
function = theano.function([x, y], tensor.dot(x, y))
found = [module.__file__ for module in cc.shipped_modules.values() if module]
compiled = cc.get_module_cache().stats[2]
print(json.dumps([found, compiled, function([[1, 2]], [[3], [4]]).tolist()]))
"""
REASON = f"this processor is none of {LEVEL}"


def is_of_level():
    theano.gof.cmodule.GCC_compiler.compile_args()
    return shipped.LEVELS[LEVEL].issubset(theano.gof.cmodule.GCC_compiler.march_flags or ())


@pytest.fixture
def directory(tmp_path):
    directory = tmp_path / "shipped"
    directory.mkdir()
    return directory


@pytest.fixture
def run(run_python, directory, tmp_path):
    def run(program, flags=""):
        done = run_python(
            program,
            flags=f"base_compiledir={tmp_path}/compiled,cmodule.shipped={directory},{flags}",
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def use(run):
    return lambda program=USE, flags="": json.loads(run(program, flags))


def test_index_and_libraries(run, directory):
    run(WRITE)
    index = json.loads((directory / f"{LEVEL}.json").read_text())
    assert len(index) == 2
    libraries = {path.name for path in directory.glob("*.so")}
    assert set(index.values()) == libraries
    assert all(name.startswith(LEVEL) for name in libraries)


def test_written_twice_alike(run, directory):
    run(WRITE)
    first = {path.name: path.read_bytes() for path in directory.iterdir()}
    run(WRITE)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == first


@pytest.mark.skipif(not is_of_level(), reason=REASON)
def test_found(run, use, directory):
    assert use() == [[], 1, [[11]]]
    run(WRITE)
    found, compiled, product = use(flags="compiledir_format=other")
    assert [path.startswith(str(directory)) for path in found] == [True]
    assert (compiled, product) == (0, [[11]])


@pytest.mark.skipif(not is_of_level(), reason=REASON)
@pytest.mark.parametrize("flags", ["gcc.cxxflags=-Wno-c++11-narrowing -w", "openmp=True"])
def test_found_with_flags_that_change_no_module(run, use, flags):
    run(WRITE)
    assert use(flags=flags)[1:] == [0, [[11]]]


def test_cache_comes_first(run, use):
    """Nothing is looked up for what this user has compiled."""
    use()
    run(WRITE)
    assert use() == [[], 0, [[11]]]


@pytest.mark.parametrize(
    "flags",
    ["gcc.cxxflags=-O1", "gcc.cxxflags=-march=x86-64", "cmodule.shipped=", "blas.ldflags="],
    ids=["compiler flag", "processor", "no directory", "no BLAS"],
)
def test_other_flags_compile(run, use, flags):
    run(WRITE)
    found, compiled, _ = use(flags=flags)
    assert found == []
    assert compiled == (flags != "blas.ldflags=")


@pytest.mark.parametrize(
    "change",
    [
        "from theano.gof import shipped\nshipped.headers = lambda: 'other'\n",
        "import numpy\nnumpy.__version__ = '1.26.99'\n",
    ],
    ids=["header", "numpy"],
)
def test_other_surroundings_compile(run, use, change):
    run(WRITE)
    assert use(change + USE) == [[], 1, [[11]]]


def test_failing_compiler_is_told(run_python, directory):
    done = run_python(WRITE, flags=f"cmodule.shipped={directory},gcc.cxxflags=-include/no/such")
    assert "/no/such" in done.stderr
    assert list(directory.iterdir()) == []
