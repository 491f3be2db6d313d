"""build/modules-are-cached.patch lists the compile cache only if it may contain new modules.

Without the patch, Theano lists the cache for each function with a profile and for each compilation.
"""

import pytest
import theano
import theano.tensor as tt
from recording import COMPILED
from theano.gof.cmodule import ModuleCache


def test_a_second_function_does_not_list_the_cache(monkeypatch):
    x = tt.dvector()
    profile = theano.compile.ProfileStats(atexit_print=False)
    theano.function([x], x + 1, profile=profile)
    listing = []
    refresh = ModuleCache.refresh
    monkeypatch.setattr(
        ModuleCache, "refresh", lambda *args, **kw: listing.append(args) or refresh(*args, **kw)
    )
    function = theano.function([x], x + 2, mode="FAST_COMPILE", profile=profile)
    assert function([1.0]).tolist() == [3.0]
    assert listing == []


LISTED = (
    COMPILED
    + """
import os, shutil, subprocess, sys
from pathlib import Path
from theano.gof.cmodule import ModuleCache

listings = []
refresh = ModuleCache.refresh
ModuleCache.refresh = lambda *args, **kwargs: listings.append(1) or refresh(*args, **kwargs)
x = tt.dvector()

def compile(op):
    del compiled[:]
    function = theano.function([x], op(x), mode=theano.compile.mode.Mode(optimizer=None))
    return function([0.25]).tolist()

def in_another_process(op):
    code = f"import theano, theano.tensor as tt; x = tt.dvector(); theano.function([x], {op}(x))"
    subprocess.run([sys.executable, "-c", code], check=True)

def remove():
    for key in Path(theano.config.compiledir).glob("*/key.pkl"):
        shutil.rmtree(key.parent)

# The program imports no Python module after this line.
in_another_process("tt.exp")
compile(tt.sin)
compile(tt.cos)
"""
)


@pytest.fixture
def run(run_python, tmp_path):
    """Return a function that runs code after LISTED filled a new compile cache."""

    def run(code):
        completed = run_python(LISTED + code, flags=f"base_compiledir={tmp_path}/compiled")
        assert completed.returncode == 0, completed.stderr

    return run


def test_the_cache_is_not_listed_after_own_additions(run):
    run(
        """
del listings[:]
assert all(compile(op) and compiled for op in (tt.tan, tt.sinh, tt.cosh))
assert not listings
"""
    )


def test_a_module_of_another_process_is_found(run):
    run("in_another_process('tt.tan'); assert compile(tt.tan) and not compiled")


def test_a_removed_module_is_compiled_again(run):
    run(
        "in_another_process('tt.tan'); compile(tt.sinh); remove(); compile(tt.tan); assert compiled"
    )


# Defines an op in the module __main__. A key that contains the op can be loaded only afterwards.
OF_MAIN = '''
class Doubled(theano.Op):
    __props__ = ()
    def make_node(self, x):
        return theano.gof.Apply(self, [x], [x.type()])
    def c_code(self, node, name, inputs, outputs, sub):
        return """
            Py_XDECREF({1});
            {1} = (PyArrayObject*)PyNumber_Add((PyObject*){0}, (PyObject*){0});
        """.format(inputs[0], outputs[0])
    def c_code_cache_version(self):
        return (1,)
'''


def test_a_key_that_became_readable_is_found(run):
    run(f"{OF_MAIN}\nassert compile(Doubled()) == [0.5] and compiled")
    run(f"compile(tt.sinh)\n{OF_MAIN}\nassert compile(Doubled()) == [0.5] and not compiled")
