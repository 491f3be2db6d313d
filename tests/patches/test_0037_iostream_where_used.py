"""A module includes <iostream> where its code names what is in it.

Without the patch, every module included it.
"""

import theano
import theano.tensor as tt
from theano.gof import cmodule
from theano.gof.cc import CLinker


class Printing(theano.gof.Op):
    """The input; its code writes it to std::cerr, without asking for the header."""

    __props__ = ()

    def make_node(self, x):
        return theano.Apply(self, [x], [x.type()])

    def c_code(self, node, name, inputs, outputs, sub):
        (x,), (z,) = inputs, outputs
        return f"std::cerr << PyArray_SIZE({x}) << std::endl; Py_INCREF({x}); {z} = {x};"


def source(function):
    (node,) = function.maker.fgraph.apply_nodes
    graph = theano.gof.FunctionGraph(node.inputs, node.outputs)
    return CLinker().accept(graph).get_src_code()


def test_only_code_that_uses_it_has_it():
    x = tt.dvector()
    assert "<iostream>" not in source(theano.function([x], tt.exp(x)))
    assert "#include <iostream>" in source(theano.function([x], Printing()(x)))


def test_a_word_that_only_begins_so():
    module = cmodule.DynamicModule()
    module.add_support_code('fprintf(stderr, "stdout")')
    assert "#include <iostream>" not in module.include_lines()
    module.add_support_code("using namespace std;")
    assert "#include <iostream>" in module.include_lines()
