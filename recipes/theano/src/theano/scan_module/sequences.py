"""What gradients of recurrences compute of their sequences alone, computed for all steps at once.

That is most of what the recurrence itself computed: its states are sequences now. Out of other
Scans, Theano pushes what is elementwise and no more, as they may be there to hold the values of one
step at a time; but a gradient needs the states of all steps in any case, and what weights multiply.
What may be larger than these, by broadcasting or as a product of two matrices, stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from theano import gof, tensor
from theano import scalar as scal
from theano.compile.ops import Shape, Shape_i
from theano.scan_module import scan_op
from theano.scan_module.graphs import copy_graph, copy_scan
from theano.scan_module.scan_utils import safe_new
from theano.tensor import nnet, subtensor
from theano.tensor.elemwise import DimShuffle, Elemwise, Sum

if TYPE_CHECKING:
    from theano.gof import Apply, Variable
    from theano.gof.fg import FunctionGraph


class PushOutOfGradients(gof.Optimizer):
    """Compute what gradients of recurrences compute of their sequences alone outside of them."""

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Have replacements validated."""
        fgraph.attach_feature(gof.toolbox.ReplaceValidate())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Push out of all of the graph's."""
        for node in fgraph.toposort():
            if is_gradient_of_recurrence(node):
                push_out(fgraph, node)


def register(db: Any) -> None:
    """Have it done where Theano pushes out of other Scans; optimizer_excluding knows its names."""
    db.register("scanOp_pushout_gradients", PushOutOfGradients(), 3, "fast_run", "more_mem", "scan")


def is_gradient_of_recurrence(node: Apply) -> bool:
    """Whether a node is the gradient of a Scan that has states."""
    return isinstance(node.op, scan_op.Scan) and node.op.n_mit_mot > 0


def is_other_scan(node: Apply) -> bool:
    """Whether a node is another Scan."""
    return isinstance(node.op, scan_op.Scan) and not is_gradient_of_recurrence(node)


class Outside(NamedTuple):
    """What stands outside of a Scan for a variable of its steps.

    Attributes:
        variable: the variable's value, or its values in all steps along the first dimension.
        varies: whether it may have other values in each step.
    """

    variable: Any
    varies: bool


def push_out(fgraph: FunctionGraph, node: Apply) -> None:
    """Replace a Scan by one that is given what its steps computed of its sequences alone."""
    scan = node.op
    outside = {
        inner: Outside(outer, varies)
        for inners, outers, varies in (
            (scan.inner_seqs(scan.inputs), scan.outer_seqs(node.inputs), True),
            (scan.inner_non_seqs(scan.inputs), scan.outer_non_seqs(node.inputs), False),
        )
        for inner, outer in zip(inners, outers, strict=True)
    }
    pushed, fills = [], []
    # What the steps still read, of that which stands outside.
    read = set(scan.outputs)
    for each in gof.graph.io_toposort(scan.inputs, scan.outputs):
        if is_fill(each) and each.inputs[0] in outside and outside[each.inputs[0]].varies:
            fills.append(each)
            read.add(each.inputs[1])
        elif (found := outside_of(each, outside)) is None:
            read.update(each.inputs)
        else:
            outside[each.outputs[0]] = found
            pushed.append(each)
    within = set(scan.outputs)
    for each in reversed(pushed):
        out, inputs = each.outputs[0], [x for x in each.inputs if x in outside]
        new = [x for x in inputs if outside[x].varies and x not in read]
        if out in within or (out in read and is_cheap(each) and len(new) < 2):
            within.add(out)
            read.update(inputs)
    moved = [each.outputs[0] for each in pushed if each.outputs[0] in read - within]
    if moved:
        shapes = {
            each: outside[each.inputs[0]].variable for each in fills if each.inputs[0] not in read
        }
        replace(fgraph, node, {x: outside[x] for x in moved}, shapes)


def replace(
    fgraph: FunctionGraph,
    node: Apply,
    moved: Mapping[Variable, Outside],
    shapes: Mapping[Apply, Variable],
) -> None:
    """Replace a Scan by one that is given values of its steps.

    Args:
        moved: what stands outside for each of these variables.
        shapes: fills of its steps, in the order of computation, which need no more of their first
            inputs than lengths, with what stands outside for these.
    """
    copies = {x: safe_new(x) for x in [*node.op.inputs, *moved]}
    sequences = {copies[x]: each.variable for x, each in moved.items() if each.varies}
    others = {copies[x]: each.variable for x, each in moved.items() if not each.varies}
    for fill, like in shapes.items():
        copy_graph(fill.inputs[1:], copies, strict=True, share_inputs=True)
        value = copies[fill.inputs[1]]
        sizes = lengths(value)
        for d, one in enumerate(fill.outputs[0].broadcastable):
            if value.broadcastable[d] and not one:
                outer = length(like, d + 1)
                sizes[d] = safe_new(outer)
                others[sizes[d]] = outer
        whole = value.type == fill.outputs[0].type
        copies[fill.outputs[0]] = value if whole else tensor.alloc(value, *sizes)
    fgraph.replace_all_validate_remove(
        list(zip(node.outputs, copy_scan(node, copies, sequences, others), strict=True)),
        remove=[node],
        reason="scanOp_pushout_gradients",
    )


# In a fused loop these cost less than reading what they give.
ARITHMETIC = (
    scal.Abs,
    scal.Add,
    scal.Cast,
    scal.EQ,
    scal.GE,
    scal.GT,
    scal.Identity,
    scal.LE,
    scal.LT,
    scal.Maximum,
    scal.Minimum,
    scal.Mul,
    scal.Neg,
    scal.Second,
    scal.Sqr,
    scal.Sub,
    scal.Switch,
)


def is_cheap(node: Apply) -> bool:
    """Whether a node's output is better computed in each step than read."""
    return isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, ARITHMETIC)


def is_fill(node: Apply) -> bool:
    """Whether a node reads nothing of its first input but the shape."""
    return isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, scal.Second)


def outside_of(node: Apply, outside: Mapping[Variable, Outside]) -> Outside | None:
    """What can stand outside of a Scan for what a node of its steps computes, or None."""
    if type(node.op) not in RULES or len(node.outputs) > 1:
        return None
    inputs = []
    for x in node.inputs:
        if isinstance(x, gof.Constant):
            inputs.append(Outside(x.clone(), False))
        elif x in outside:
            inputs.append(outside[x])
        else:
            return None
    if not any(each.varies for each in inputs):
        return Outside(node.op(*(each.variable for each in inputs)), False)
    varies = not isinstance(node.op, (Shape, Shape_i))
    found = RULES[type(node.op)](node, *inputs)
    inner = node.outputs[0].type
    if found is None or (found.dtype, found.broadcastable[varies:]) != (
        inner.dtype,
        inner.broadcastable,
    ):
        return None
    return Outside(found, varies)


def length(x: Any, dimension: int) -> Any:
    """The length of one of a tensor's dimensions."""
    if x.broadcastable[dimension]:
        return tensor.constant(1, dtype="int64")
    return Shape_i(dimension)(x)


def lengths(x: Any, first: int = 0) -> list[Any]:
    """The lengths of a tensor's dimensions, from first on."""
    return [length(x, dimension) for dimension in range(first, x.ndim)]


def join_steps(x: Any) -> Any:
    """Make one dimension of the steps and the first dimension of each."""
    if x.broadcastable[1]:
        return x.dimshuffle(0, *range(2, x.ndim))
    return x.reshape([length(x, 0) * length(x, 1), *lengths(x, 2)], ndim=x.ndim - 1)


def split_steps(x: Any, like: Any) -> Any:
    """Undo join_steps; like has the two dimensions."""
    if like.broadcastable[1]:
        return x.dimshuffle(0, "x", *range(1, x.ndim))
    return x.reshape([length(like, 0), length(like, 1), *lengths(x, 1)], ndim=x.ndim + 1)


# Each of these returns what a node of the steps gives in all of them at once, or None.


def _elemwise(node: Apply, *inputs: Outside) -> Any:
    given = zip(node.inputs, inputs, strict=True)
    if not any(
        varies and x.type.broadcastable == node.outputs[0].broadcastable for x, (_, varies) in given
    ):
        return None
    return node.op(*(each.variable for each in inputs))


def _dimshuffle(node: Apply, x: Outside) -> Any:
    return x.variable.dimshuffle(0, *("x" if d == "x" else d + 1 for d in node.op.new_order))


def _dot(node: Apply, x: Outside, y: Outside) -> Any:
    one, other = node.inputs
    if {one.dtype, other.dtype} not in ({"float32"}, {"float64"}):
        return None
    if x.varies and y.varies:
        return _dot_of_steps(x.variable, y.variable)
    if x.varies:
        return _dot_by_weights(x.variable, y.variable)
    return tensor.dot(y.variable, x.variable.T) if other.ndim == 1 else None


def _dot_of_steps(left: Any, right: Any) -> Any:
    if left.ndim == right.ndim == 2:
        return (left * right).sum(1)
    if left.ndim == 2:
        return tensor.batched_dot(left.dimshuffle(0, "x", 1), right).dimshuffle(0, 2)
    return tensor.batched_dot(left, right) if right.ndim == 2 else None


def _dot_by_weights(left: Any, right: Any) -> Any:
    if left.ndim == 2:
        return tensor.dot(left, right)
    return split_steps(tensor.dot(join_steps(left), right), left)


def _sum(node: Apply, x: Outside) -> Any:
    axis = range(node.inputs[0].ndim) if node.op.axis is None else node.op.axis
    return Sum([d + 1 for d in axis], node.op.dtype, node.op.acc_dtype)(x.variable)


def _of_rows(node: Apply, x: Outside) -> Any:
    return split_steps(node.op(join_steps(x.variable)), x.variable)


def _join(node: Apply, axis: Outside, *inputs: Outside) -> Any:
    if not isinstance(axis.variable, gof.Constant):
        return None
    steps = next(length(each.variable, 0) for each in inputs if each.varies)
    tensors = [x if varies else tensor.alloc(x, steps, *lengths(x)) for x, varies in inputs]
    return tensor.join(int(axis.variable.data) % node.outputs[0].ndim + 1, *tensors)


def _subtensor(node: Apply, x: Outside, *indices: Outside) -> Any:
    if any(index.varies for index in indices):
        return None
    op = subtensor.Subtensor([slice(None), *node.op.idx_list])
    return op(x.variable, *(index.variable for index in indices))


def _reshape(node: Apply, x: Outside, shape: Outside) -> Any:
    made_of = shape.variable.owner
    if isinstance(shape.variable, gof.Constant):
        sizes: Iterable[Any] = shape.variable.data.tolist()
    elif made_of and isinstance(made_of.op, tensor.opt.MakeVector):
        sizes = made_of.inputs
    elif made_of and isinstance(made_of.op, Shape):
        sizes = lengths(made_of.inputs[0])
    else:
        return None
    # What -1 means is not known where there are no steps.
    if any(tensor.extract_constant(size) == -1 for size in sizes):
        return None
    return x.variable.reshape([length(x.variable, 0), *sizes], ndim=node.op.ndim + 1)


def _take(node: Apply, x: Outside, indices: Outside) -> Any:
    if not x.varies:
        found = node.op(x.variable, join_steps(indices.variable))
        return split_steps(found, indices.variable)
    if not isinstance(indices.variable, gof.Constant):
        return None
    order = 1, 0, *range(2, x.variable.ndim)
    return node.op(x.variable.dimshuffle(order), indices.variable).dimshuffle(order)


def _shape(node: Apply, x: Outside) -> Any:
    return tensor.stack(lengths(x.variable, 1)) if node.inputs[0].ndim else None


def _shape_i(node: Apply, x: Outside) -> Any:
    return length(x.variable, node.op.i + 1)


RULES: dict[type, Any] = {
    Elemwise: _elemwise,
    DimShuffle: _dimshuffle,
    tensor.Dot: _dot,
    Sum: _sum,
    nnet.nnet.Softmax: _of_rows,
    nnet.nnet.LogSoftmax: _of_rows,
    tensor.Join: _join,
    subtensor.Subtensor: _subtensor,
    tensor.Reshape: _reshape,
    subtensor.AdvancedSubtensor1: _take,
    Shape: _shape,
    Shape_i: _shape_i,
    # Of lengths, which are the same in all steps.
    tensor.opt.MakeVector: lambda *_: None,
}
