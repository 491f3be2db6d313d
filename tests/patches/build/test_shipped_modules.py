"""build/shipped-modules.patch uses shipped modules that equal the modules that g++ would compile.

Without the patch, g++ compiles the modules of Dot22 and Softmax again for each new compiledir.
"""

import json

import pytest
from theano.misc import cpu

LEVEL = "fma"
# Writes shipped modules of Dot22 and Softmax.
WRITE = f"""
import os, sys
from theano import config, tensor
from theano.gof import shipped
x, y = tensor.fmatrices("xy")
nodes = [output.owner for output in (tensor.blas._dot22(x, y), tensor.nnet.softmax_op(x))]
linkers = [node.op.c_linker(node, []) for node in nodes]
shipped.write_modules(linkers, "{LEVEL}", config.cmodule.shipped)
"""
# Prints the files of the shipped modules that compute a product, the number of compiled modules,
# and the product.
USE = """
import json
import theano
from theano import tensor
from theano.gof import cc, linker_parts
x, y = tensor.fmatrices("xy")
function = theano.function([x, y], tensor.dot(x, y))
files = [module.__file__ for module in linker_parts.shipped_modules.values() if module]
compiled = cc.get_module_cache().stats[2]
print(json.dumps([files, compiled, function([[1, 2]], [[3], [4]]).tolist()]))
"""
LOOPS = """
from theano import scalar, tensor
x = tensor.fmatrix("x")
outputs = tensor.exp(x), x.sum(axis=0), tensor.elemwise.CAReduce(scalar.maximum, 1)(x)
"""
# Writes shipped loops of an exponential, a sum and a maximum.
WRITE_LOOPS = f"""{LOOPS}
from theano import config
from theano.tensor.linkers import shipped_loops
nodes = [output.owner for output in outputs]
linkers = [node.op.c_linker(node, []) for node in nodes]
shipped_loops.write_library(linkers, "{LEVEL}", config.cmodule.shipped)
"""
# Prints the number of compiled modules, the results for a matrix, its transpose and a slice, and
# the error for an empty dimension.
USE_LOOPS = f"""{LOOPS}
import json
import numpy
import theano
from theano.gof import cc, linker_parts
function = theano.function([x], outputs)
value = numpy.linspace(-2, 2, 28, dtype="float32").reshape(4, 7)
results = [[out.tolist() for out in function(x)] for x in (value, value.T, value[::-2, ::-3])]
try:
    function(value[:, :0])
except ValueError as error:
    results.append(str(error).splitlines()[0])
print(json.dumps([cc.get_module_cache().stats[2], results]))
"""
REASON = f"this processor is not of the level {LEVEL}"


def has_level():
    """Return whether this processor has the instructions of LEVEL."""
    return LEVEL in {level.name for level in cpu.levels}


@pytest.fixture
def directory(tmp_path):
    """Return an empty directory for shipped modules."""
    directory = tmp_path / "shipped"
    directory.mkdir()
    return directory


@pytest.fixture
def run(run_python, directory, tmp_path):
    """Return a function that runs a program with shipped modules and returns its output."""

    def run(program, flags=""):
        completed = run_python(
            program,
            flags=f"base_compiledir={tmp_path}/compiled,cmodule.shipped={directory},{flags}",
        )
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    return run


@pytest.fixture
def use(run):
    """Return a function that runs USE, or another program, and parses its output."""
    return lambda program=USE, flags="": json.loads(run(program, flags))


def test_the_index_names_the_libraries(run, directory):
    run(WRITE)
    index = json.loads((directory / f"{LEVEL}.json").read_text())
    assert len(index) == 2
    libraries = {path.name for path in directory.glob("*.so")}
    assert set(index.values()) == libraries
    assert all(name.startswith(LEVEL) for name in libraries)


def test_writing_twice_gives_the_same_bytes(run, directory):
    run(WRITE)
    first = {path.name: path.read_bytes() for path in directory.iterdir()}
    run(WRITE)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == first


@pytest.mark.skipif(not has_level(), reason=REASON)
def test_shipped_modules_are_used(run, use, directory):
    assert use() == [[], 1, [[11]]]
    run(WRITE)
    files, compiled, product = use(flags="compiledir_format=other")
    assert [path.startswith(str(directory)) for path in files] == [True]
    assert (compiled, product) == (0, [[11]])


@pytest.mark.skipif(not has_level(), reason=REASON)
@pytest.mark.parametrize("flags", ["gcc.cxxflags=-Wno-c++11-narrowing -w", "openmp=True"])
def test_shipped_modules_are_used_with_irrelevant_flags(run, use, flags):
    run(WRITE)
    assert use(flags=flags)[1:] == [0, [[11]]]


@pytest.mark.skipif(not has_level(), reason=REASON)
def test_shipped_loops_equal_compiled_loops(run, use, directory):
    """Shipped loops compute the same bits as compiled loops, and raise the same errors."""
    compiled = use(USE_LOOPS)
    run(WRITE_LOOPS)
    assert [path.name for path in directory.iterdir()] == [f"{LEVEL}-loops.so"]
    shipped = use(USE_LOOPS, flags="compiledir_format=other")
    assert compiled == [3, shipped[1]]
    assert shipped[0] == 0
    assert "zero-size on axis 1" in shipped[1][-1]


@pytest.mark.skipif(not has_level(), reason=REASON)
@pytest.mark.parametrize(
    ("change", "flags"),
    [
        ("", "gcc.cxxflags=-O1"),
        ("", "gcc.cxxflags=-march=x86-64"),
        ("", "cmodule.shipped="),
        ("from theano.gof import shipped\nshipped.hash_headers = lambda: 'other'\n", ""),
        ("from theano import scalar\nscalar.Exp.c_code = scalar.Log.c_code\n", ""),
    ],
    ids=["compiler flag", "processor", "no directory", "header", "code"],
)
def test_loops_that_differ_from_shipped_loops_are_compiled(run, use, change, flags):
    run(WRITE_LOOPS)
    assert use(change + USE_LOOPS, flags=flags)[0] == (1 if "Exp" in change else 3)


def test_shipped_loops_do_not_depend_on_the_writing_processor(run, directory):
    run(WRITE_LOOPS)
    (path,) = directory.iterdir()
    first = path.read_bytes()
    flags = "from theano.gof import cmodule\ncmodule.GCC_compiler.march_flags = ['-mno-avx']\n"
    run(flags + WRITE_LOOPS)
    assert path.read_bytes() == first


def test_the_users_cache_comes_first(run, use):
    """If the user's cache has the module, the shipped modules are not searched."""
    use()
    run(WRITE)
    assert use() == [[], 0, [[11]]]


@pytest.mark.parametrize(
    "flags",
    ["gcc.cxxflags=-O1", "gcc.cxxflags=-march=x86-64", "cmodule.shipped=", "blas.ldflags="],
    ids=["compiler flag", "processor", "no directory", "no BLAS"],
)
def test_flags_that_change_modules_disable_shipped_modules(run, use, flags):
    run(WRITE)
    files, compiled, _ = use(flags=flags)
    assert files == []
    assert compiled == (flags != "blas.ldflags=")


@pytest.mark.parametrize(
    "change",
    [
        "from theano.gof import shipped\nshipped.hash_headers = lambda: 'other'\n",
        "import numpy\nnumpy.__version__ = '1.26.99'\n",
    ],
    ids=["header", "numpy"],
)
def test_other_headers_and_numpy_versions_disable_shipped_modules(run, use, change):
    run(WRITE)
    assert use(change + USE) == [[], 1, [[11]]]


def test_a_compiler_error_is_reported_and_nothing_is_written(run_python, directory):
    completed = run_python(
        WRITE, flags=f"cmodule.shipped={directory},gcc.cxxflags=-include/no/such"
    )
    assert "/no/such" in completed.stderr
    assert list(directory.iterdir()) == []
