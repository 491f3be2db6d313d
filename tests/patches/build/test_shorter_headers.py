"""build/short-sources.patch includes <iostream> only if needed, and compiles modules as C++14.

Without the patch, every module includes <iostream>. The compiler chooses the C++ standard unless
gcc.cxxflags names a standard.
"""

import theano
import theano.tensor as tt
from theano.gof import cmodule
from theano.gof.cc import CLinker
from theano.gof.cmodule import GCC_compiler


class Printing(theano.gof.Op):
    """An identity op whose C code uses std::cerr without including <iostream>."""

    __props__ = ()

    def make_node(self, x):
        return theano.Apply(self, [x], [x.type()])

    def c_code(self, node, name, inputs, outputs, sub):
        (x,), (z,) = inputs, outputs
        return f"std::cerr << PyArray_SIZE({x}) << std::endl; Py_INCREF({x}); {z} = {x};"


def get_source(function):
    """Return the C++ source for the only node of a function."""
    (node,) = function.maker.fgraph.apply_nodes
    graph = theano.gof.FunctionGraph(node.inputs, node.outputs)
    return CLinker().accept(graph).get_src_code()


def test_only_code_that_uses_iostream_includes_it():
    x = tt.dvector()
    assert "<iostream>" not in get_source(theano.function([x], tt.exp(x)))
    assert "#include <iostream>" in get_source(theano.function([x], Printing()(x)))


def test_names_that_begin_with_std_need_no_iostream():
    module = cmodule.DynamicModule()
    module.add_support_code('fprintf(stderr, "stdout")')
    assert "#include <iostream>" not in module.make_include_lines()
    module.add_support_code("using namespace std;")
    assert "#include <iostream>" in module.make_include_lines()


def list_standards():
    return [flag for flag in GCC_compiler.compile_args() if flag.startswith("-std=")]


def test_the_users_standard_takes_precedence():
    assert list_standards() == ["-std=gnu++14"]
    with theano.change_flags([("gcc.cxxflags", "-O2 -std=gnu++17")]):
        assert list_standards() == ["-std=gnu++14", "-std=gnu++17"]


def test_gcc_cxxflags_can_select_another_standard(run_python, tmp_path):
    """The op returns __cplusplus, the number of the standard."""
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


def test_calls_resolve_to_cpp_overloads(run_python, tmp_path):
    """abs of a double calls C++'s overload for double, not C's abs for integers."""
    program = """
import theano
class Absolute(theano.gof.Op):
    __props__ = ()
    def make_node(self, x): return theano.Apply(self, [x], [x.type()])
    def c_code(self, node, name, inputs, outputs, sub):
        return "Py_XDECREF(%s); %s = (PyArrayObject *)PyArray_NewCopy(%s, NPY_CORDER);" \\
            "double &z = *(double *)PyArray_DATA(%s); z = abs(z) + pow(2, 0.5f);" % (
                outputs[0], outputs[0], inputs[0], outputs[0])
x = theano.tensor.dscalar()
print(repr(float(theano.function([x], Absolute()(x))(-0.75))))
"""
    for flags in ("", ",gcc.cxxflags=-std=gnu++17 -include iostream"):
        result = run_python(program, flags=f"base_compiledir={tmp_path}{flags}")
        assert result.returncode == 0, result.stderr
        assert float(result.stdout) == 0.75 + 2**0.5
