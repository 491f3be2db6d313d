"""Check Theano-PyMC's names: they refer to Theano's objects. Run code with its signatures."""

import importlib
import pickle
import sys

import numpy as np
import theano
import theano.tensor as tt

# `import theano` alone makes these modules available, as in Theano-PyMC.
assert theano.graph.basic.Apply is theano.Apply
assert theano.graph.fg.MissingInputError is theano.gof.MissingInputError
assert theano.graph.opt.GlobalOptimizer is theano.gof.Optimizer
assert theano.link.vm.VMLinker is theano.gof.vm.VM_Linker
assert theano.utils.flatten is theano.gof.utils.flatten
assert callable(theano.scan) and callable(theano.compile.function)

from theano.compile.function.types import FunctionMaker
from theano.graph.basic import Apply, ancestors, applys_between, graph_inputs, orphans_between, walk
from theano.graph.op import ExternalCOp, Op
from theano.graph.opt import LocalOptimizer, local_optimizer
from theano.graph.utils import MetaObject, TestValueError
from theano.sandbox.rng_mrg import MRG_RandomStream, MRG_RandomStreams
from theano.scan import until
from theano.scan.op import Scan

assert FunctionMaker is theano.compile.function_module.FunctionMaker
assert Op is theano.Op and ExternalCOp is theano.gof.COp
assert issubclass(Op, MetaObject)
assert MRG_RandomStream is MRG_RandomStreams
assert until is theano.scan_module.until
assert Scan is theano.scan_module.scan_op.Scan
# Every alias module imports.
aliases = [name for name in sys.modules if name.startswith(("theano.graph.", "theano.link."))]
assert len(aliases) > 20, aliases
for name in "theano.compile.function.pfunc", "theano.tensor.random.type":
    importlib.import_module(name)

# Flags.
before = theano.config.compute_test_value
with theano.config.change_flags(compute_test_value="raise", gcc__cxxflags="-g0"):
    assert theano.config.compute_test_value == "raise"
    assert theano.config.gcc.cxxflags == theano.config.gcc__cxxflags == "-g0"
assert theano.config.compute_test_value == before
assert theano.config.gcc__cxxflags != "-g0"


@theano.config.change_flags(floatX="float32")
def float_type():
    return theano.config.floatX


assert float_type() == "float32"
assert theano.config.floatX == "float64"

# Graphs.
x, y = tt.dvectors("xy")
z = tt.exp(x + y * 2)
assert list(graph_inputs([z]))[:2] == [x, y]
assert list(ancestors([z], blockers=[z.owner.inputs[0]])) == [z, z.owner.inputs[0]]
assert [type(v) for v in orphans_between([x, y], [z])] == [tt.TensorConstant]
assert z.owner in list(applys_between([x, y], [z]))
children = {1: [2, 3], 2: [4], 3: [4], 4: None}
assert list(walk([1], children.get)) == [1, 2, 3, 4]
assert list(walk([1], children.get, bfs=False)) == [1, 3, 4, 2]
assert list(walk([4], children.get, return_children=True)) == [(4, None)]
try:
    x.get_test_value()
    raise AssertionError("get_test_value returned a value for a variable without a test value")
except TestValueError:
    pass
x.tag.test_value = np.ones(2)
assert x.get_test_value() is x.tag.test_value
assert theano.shared(3).get_test_value() == 3

# Test values have the type of their variable.
scalar = tt.dscalar()
scalar.tag.test_value = np.float64(3)
assert type(scalar.tag.test_value) is np.ndarray
assert theano.shared(scalar.tag.test_value, broadcastable=()).get_value() == 3
whole = tt.lscalar().clone()
whole.tag.test_value = 2.0
assert whole.tag.test_value.dtype == "int64"
try:
    whole.tag.test_value = np.ones(2)
    raise AssertionError("a scalar accepted a vector as its test value")
except TypeError:
    pass
with theano.config.change_flags(floatX="float32"):
    single = tt.fscalar()
    single.tag.test_value = np.float64(0.3)
    assert single.tag.test_value == np.float32(0.3)
assert b"ValidatingScratchpad" not in pickle.dumps(single)
assert pickle.loads(pickle.dumps(single)).tag.test_value == np.float32(0.3)


# Ops and optimizers whose methods take the graph.
class Twice(Op):
    __props__ = ()
    shapes_asked = 0

    def make_node(self, v):
        return Apply(self, [v], [v.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = 2 * inputs[0]

    def infer_shape(self, fgraph, node, shapes):
        assert isinstance(node, Apply)
        Twice.shapes_asked += 1
        return shapes

    def grad(self, inputs, gradients):
        return [2 * gradients[0]]


class TwiceTwice(Twice):
    def infer_shape(self, fgraph, node, shapes):
        return super().infer_shape(fgraph, node, shapes)


twice = Twice()
f = theano.function([x], [twice(x), TwiceTwice()(x).shape])
assert Twice.shapes_asked == 2, Twice.shapes_asked
assert f([1, 2])[0].tolist() == [2, 4]
assert f([1, 2])[1].tolist() == [2]
assert theano.grad(twice(x).sum(), x).eval({x: [1, 2]}).tolist() == [2, 2]


@theano.compile.ops.as_op(
    [tt.dvector], [tt.dvector], infer_shape=lambda fgraph, node, shapes: [shapes[0]]
)
def half(v):
    return v / 2


assert theano.function([x], [half(x), half(x).shape])([2, 4])[1].tolist() == [2]

graphs = []


@local_optimizer([Twice])
def local_twice(fgraph, node):
    graphs.append(fgraph)
    return [node.inputs[0] * 2] if isinstance(node.op, Twice) else False


class Add(LocalOptimizer):
    def transform(self, fgraph, node):
        assert node in fgraph.apply_nodes
        return [node.inputs[0] + node.inputs[0]] if isinstance(node.op, Twice) else False


for optimizer in local_twice, Add():
    graph = theano.graph.fg.FunctionGraph([x], [twice(x)])
    assert graph.get_clients(graph.inputs[0]) == graph.clients[graph.inputs[0]]
    theano.graph.opt.TopoOptimizer(optimizer).optimize(graph)
    assert not [node for node in graph.apply_nodes if isinstance(node.op, Twice)]
assert graphs and isinstance(graphs[0], theano.graph.fg.FunctionGraph)

# Functions that Theano 1.0.5 lacks, or whose parameters differ.
row = tt.tensor3().dimshuffle("x", 0, "x", 1, 2)
assert row.squeeze().ndim == 3
assert tt.squeeze(row, axis=0).ndim == 4
assert tt.squeeze(row, axis=(0, 1)).ndim == 4
assert tt.broadcast_to(x, (3, 2)).eval({x: [1, 2]}).tolist() == [[1, 2]] * 3
assert not hasattr(tt.random, "normal")

# The pickle of a function refers to Theano's modules only.
assert b"theano.graph" not in pickle.dumps(f)
