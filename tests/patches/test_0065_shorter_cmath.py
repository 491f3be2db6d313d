"""Modules are compiled by C++14, unless gcc.cxxflags names another standard.

Without the patch, it was what the compiler takes by itself.
"""

import theano
from theano.gof.cmodule import GCC_compiler


def standards():
    return [flag for flag in GCC_compiler.compile_args() if flag.startswith("-std=")]


def test_the_standard_of_the_user_counts():
    assert standards() == ["-std=gnu++14"]
    with theano.change_flags([("gcc.cxxflags", "-O2 -std=gnu++17")]):
        assert standards() == ["-std=gnu++14", "-std=gnu++17"]


def test_code_of_another_standard(run_python, tmp_path):
    program = """
import theano
class Standard(theano.gof.Op):
    __props__ = ()
    def make_node(self, x): return theano.Apply(self, [x], [x.type()])
    def c_code(self, node, name, inputs, outputs, sub):
        (x,), (z,) = inputs, outputs
        return "%s = (PyArrayObject *)PyArray_FromAny(PyLong_FromLong(__cplusplus)," \\
            "PyArray_DescrFromType(NPY_FLOAT64), 0, 0, 0, NULL);" % z
x = theano.tensor.dscalar()
print(int(theano.function([x], Standard()(x))(0)))
"""
    for flags, standard in (("", "201402"), (",gcc.cxxflags=-std=gnu++17", "201703")):
        result = run_python(program, flags=f"base_compiledir={tmp_path}{flags}")
        assert result.stdout.split() == [standard], result.stderr
