"""Optimizer that moves nodes out of the gradient of a recurrence, to compute all steps at once.

A recurrence is a Scan that has states. Its gradient is a Scan that repeats most of the recurrence's
nodes. In the gradient, the states are sequences, so many nodes depend only on sequences and on
inputs that are the same in all steps. The optimizer moves these nodes out of the Scan.

Theano moves only elementwise nodes out of other Scans, because a Scan may be written to keep the
values of only one step in memory. A gradient stores the states, and the arrays that weights
multiply, for all steps anyway. A node is not moved if its result may need more memory than these
values. This applies to broadcast results and to some products of two matrices.

The recurrence itself has computed products and sums, so it stores them for the gradient.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from theano import gof, tensor
from theano import scalar as scal
from theano.compile.ops import Shape, Shape_i
from theano.scan_module.graphs import copy_graph, copy_scan
from theano.scan_module.scan_rewriter import ScanRewriter, is_scan
from theano.scan_module.scan_utils import safe_new
from theano.scan_module.stored_values import find_recurrence, match_values, store_values
from theano.tensor import nnet, subtensor
from theano.tensor.elemwise import DimShuffle, Elemwise, Sum

if TYPE_CHECKING:
    from theano.gof import Apply, Variable
    from theano.gof.fg import FunctionGraph


def register(db: Any) -> None:
    """Register the optimizer before Theano's own push-out optimizers.

    They would change a recurrence and its gradient in different ways, so that nodes would no longer
    match.
    """
    optimizer = ScanRewriter(push_out_nodes, is_gradient_of_recurrence)
    db.register("scanOp_pushout_gradients", optimizer, 1.5, "fast_run", "more_mem", "scan")


def is_gradient_of_recurrence(node: Apply) -> bool:
    """Return whether a node is the gradient of a Scan that has states."""
    return is_scan(node) and node.op.n_mit_mot > 0


def is_other_scan(node: Apply) -> bool:
    """Return whether a node is a Scan but not the gradient of a recurrence."""
    return is_scan(node) and not is_gradient_of_recurrence(node)


class Outside(NamedTuple):
    """The outer counterpart of an inner variable of a Scan.

    Attributes:
        variable: if `varies`, the values of all steps, along the first dimension. Otherwise the
            value, which is the same in all steps.
        varies: whether the value may differ between steps.
    """

    variable: Any
    varies: bool


def push_out_nodes(fgraph: FunctionGraph, node: Apply) -> None:
    """Move nodes out of a Scan; replace it by a Scan that reads the results of moved nodes."""
    scan = node.op
    outside = {
        inner: Outside(outer, varies)
        for inners, outers, varies in (
            (scan.inner_seqs(scan.inputs), scan.outer_seqs(node.inputs), True),
            (scan.inner_non_seqs(scan.inputs), scan.outer_non_seqs(node.inputs), False),
        )
        for inner, outer in zip(inners, outers, strict=True)
    }
    # `movable` has the nodes that can be computed outside. `fills` has the nodes that need only the
    # shape of a sequence.
    movable, fills = [], []
    # The variables that the steps must read if all movable nodes are moved.
    read = set(scan.outputs)
    for inner_node in gof.graph.io_toposort(scan.inputs, scan.outputs):
        first_input = inner_node.inputs[0] if inner_node.inputs else None
        if is_fill(inner_node) and first_input in outside and outside[first_input].varies:
            fills.append(inner_node)
            read.add(inner_node.inputs[1])
        elif (counterpart := find_counterpart(inner_node, outside)) is None:
            read.update(inner_node.inputs)
        else:
            outside[inner_node.outputs[0]] = counterpart
            movable.append(inner_node)
    # The outputs of movable nodes that the steps compute themselves: outputs of the Scan, and cheap
    # results for which the steps must read at most one more sequence.
    inside = set(scan.outputs)
    for inner_node in reversed(movable):
        out, inputs = inner_node.outputs[0], [x for x in inner_node.inputs if x in outside]
        new_sequences = [x for x in inputs if outside[x].varies and x not in read]
        if out in inside or (out in read and is_cheap(inner_node) and len(new_sequences) < 2):
            inside.add(out)
            read.update(inputs)
    moved = [x.outputs[0] for x in movable if x.outputs[0] in read - inside]
    if moved:
        counterparts = {x: outside[x] for x in moved}
        shapes = {
            fill: list_lengths(fill.inputs[0], outside)
            for fill in fills
            if fill.inputs[0] not in read
        }
        read_stored_values(fgraph, node, counterparts, shapes, outside)
        replace_scan(fgraph, node, counterparts, shapes)


# A recurrence stores a product only if at most this number of products have the same value. Storing
# takes about 0.1 us per step (measured on an AMD EPYC with Zen 5 cores). Many products of one value
# have small weights, and take less time outside of the Scan.
MAX_PRODUCTS_OF_VALUE = 4


def read_stored_values(
    fgraph: FunctionGraph,
    node: Apply,
    moved: dict[Variable, Outside],
    shapes: dict[Apply, list[Any]],
    outside: Mapping[Variable, Outside],
) -> None:
    """Let the recurrence store products and sums, instead of computing them again.

    Args:
        fgraph: the graph of the Scans.
        node: the gradient.
        moved: as for replace_scan. Counterparts that need a stored value are replaced.
        shapes: as for replace_scan; updated too.
        outside: maps an inner variable to its outer counterpart, for all variables that have one.
    """
    recurrence = find_recurrence(node)
    if recurrence is None:
        return
    stored = choose_values(moved, outside, match_values(node, recurrence))
    if not stored:
        return
    inputs = list(node.inputs)
    inner = list(dict.fromkeys(stored.values()))
    outer_of = dict(zip(inner, store_values(fgraph, recurrence, inner), strict=True))
    # The copied part of the outer graph ends at the inputs of the gradient.
    copies = dict(zip(inputs, node.inputs, strict=True))
    copies.update((outside[x].variable, outer_of[value][::-1]) for x, value in stored.items())

    def copy(variable: Any) -> Any:
        return copy_graph([variable], copies, strict=True, share_inputs=True)[variable]

    for x, outer in moved.items():
        moved[x] = Outside(copy(outer.variable), outer.varies)
    for fill, lengths in shapes.items():
        shapes[fill] = [copy(length) for length in lengths]


def choose_values(
    moved: Iterable[Variable],
    outside: Mapping[Variable, Outside],
    equal: Mapping[Variable, Variable],
) -> dict[Variable, Variable]:
    """Choose the products and sums that the recurrence should store.

    Args:
        moved: the inner variables of the gradient that are computed outside of it.
        outside: as for read_stored_values.
        equal: maps inner variables of the gradient to equal inner variables of the recurrence.

    Returns:
        The part of `equal` with the values that `moved` needs.
    """
    products = {x: value for x in outside if x in equal and (value := find_value(x, outside))}
    n_products = collections.Counter(products.values())
    stored: dict[Variable, Variable] = {}
    needed = list(moved)
    while needed:
        x = needed.pop()
        if x in stored or x not in outside or not outside[x].varies:
            continue
        may_be_stored = (
            n_products[products[x]] <= MAX_PRODUCTS_OF_VALUE if x in products else is_reduction(x)
        )
        if may_be_stored and x in equal:
            stored[x] = equal[x]
        elif x.owner:
            needed += x.owner.inputs
    return stored


def find_value(x: Any, outside: Mapping[Variable, Outside]) -> Variable | None:
    """Return the factor of a product that differs between steps; the other factor is a matrix.

    Return None if `x` is not such a product.
    """
    if x.owner is None or not isinstance(x.owner.op, tensor.Dot):
        return None
    lhs, rhs = x.owner.inputs
    for value, weights in ((lhs, rhs), (rhs, lhs)):
        if weights.ndim == 2 and weights in outside and not outside[weights].varies:
            return value
    return None


def is_reduction(x: Any) -> bool:
    """Return whether a variable is a sum of a matrix's elements, or a product with a vector."""
    if x.owner is None:
        return False
    dimensions = [y.ndim for y in x.owner.inputs]
    if isinstance(x.owner.op, tensor.Dot):
        return sorted(dimensions) == [1, 2]
    return isinstance(x.owner.op, Sum) and dimensions[0] > 1


def replace_scan(
    fgraph: FunctionGraph,
    node: Apply,
    moved: Mapping[Variable, Outside],
    shapes: Mapping[Apply, Sequence[Any]],
) -> None:
    """Replace a Scan by a Scan that reads moved variables as sequences or constant inputs.

    Args:
        fgraph: the graph of the Scan.
        node: the node of the Scan.
        moved: maps a moved inner variable to its outer counterpart.
        shapes: maps an inner fill node, in the order of computation, to the lengths of its first
            input's dimensions.
    """
    copies = {x: safe_new(x) for x in [*node.op.inputs, *moved]}
    sequences = {copies[x]: outer.variable for x, outer in moved.items() if outer.varies}
    others = {copies[x]: outer.variable for x, outer in moved.items() if not outer.varies}
    for fill, lengths in shapes.items():
        copy_graph(fill.inputs[1:], copies, strict=True, share_inputs=True)
        value = copies[fill.inputs[1]]
        sizes = get_lengths(value)
        for d, has_length_1 in enumerate(fill.outputs[0].broadcastable):
            if value.broadcastable[d] and not has_length_1:
                sizes[d] = safe_new(lengths[d])
                others[sizes[d]] = lengths[d]
        whole = value.type == fill.outputs[0].type
        copies[fill.outputs[0]] = value if whole else tensor.alloc(value, *sizes)
    fgraph.replace_all_validate_remove(
        list(zip(node.outputs, copy_scan(node, copies, sequences, others), strict=True)),
        remove=[node],
        reason="scanOp_pushout_gradients",
    )


# Scalar ops that, in a fused loop, take less time than reading their results from memory.
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
    """Return whether computing a node's output takes less time than reading it from memory."""
    return isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, ARITHMETIC)


def is_fill(node: Apply) -> bool:
    """Return whether a node is a fill, which reads only the shape of its first input."""
    return isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, scal.Second)


def find_counterpart(node: Apply, outside: Mapping[Variable, Outside]) -> Outside | None:
    """Compute an inner node outside of the Scan; return None if that is impossible.

    Args:
        node: the inner node.
        outside: maps an inner variable to its outer counterpart.
    """
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
    if not any(x.varies for x in inputs):
        return Outside(node.op(*(x.variable for x in inputs)), False)
    varies = not isinstance(node.op, (Shape, Shape_i))
    result = RULES[type(node.op)](node, *inputs)
    inner = node.outputs[0].type
    if result is None or (result.dtype, result.broadcastable[varies:]) != (
        inner.dtype,
        inner.broadcastable,
    ):
        return None
    return Outside(result, varies)


def get_length(x: Any, dimension: int) -> Any:
    """Return the length of a tensor along a dimension."""
    if x.broadcastable[dimension]:
        return tensor.constant(1, dtype="int64")
    return Shape_i(dimension)(x)


def get_lengths(x: Any, first: int = 0) -> list[Any]:
    """Return the lengths of a tensor's dimensions, from dimension `first` on."""
    return [get_length(x, dimension) for dimension in range(first, x.ndim)]


def list_lengths(x: Any, outside: Mapping[Variable, Outside]) -> list[Any]:
    """Return the lengths of an inner variable's dimensions.

    They are inferred from the inputs of the last nodes, because Theano would compute a variable of
    which it has to find the lengths.
    """
    if isinstance(x, gof.Constant):
        return [tensor.constant(length, dtype="int64") for length in x.data.shape]
    if x.owner and isinstance(x.owner.op, (Elemwise, Sum, tensor.Dot)):
        inputs = [tuple(list_lengths(y, outside)) for y in x.owner.inputs]
        return [tensor.as_tensor_variable(n) for n in x.owner.op.infer_shape(x.owner, inputs)[0]]
    return get_lengths(outside[x].variable, int(outside[x].varies))


def join_steps(x: Any) -> Any:
    """Reshape (steps, n, ...) to (steps * n, ...)."""
    if x.broadcastable[1]:
        return x.dimshuffle(0, *range(2, x.ndim))
    return x.reshape([get_length(x, 0) * get_length(x, 1), *get_lengths(x, 2)], ndim=x.ndim - 1)


def split_steps(x: Any, like: Any) -> Any:
    """Undo join_steps; `like` is a tensor with the original first two dimensions."""
    if like.broadcastable[1]:
        return x.dimshuffle(0, "x", *range(1, x.ndim))
    return x.reshape(
        [get_length(like, 0), get_length(like, 1), *get_lengths(x, 1)], ndim=x.ndim + 1
    )


# Each rule computes the results of an inner node for all steps at once. Its arguments are the node
# and the counterparts of the node's inputs. It returns None if the node must stay in the Scan.


def _elemwise(node: Apply, *inputs: Outside) -> Any:
    # The result could need more memory than the inputs, unless an input that varies between steps
    # has the shape of the result.
    pairs = zip(node.inputs, inputs, strict=True)
    if not any(
        varies and x.type.broadcastable == node.outputs[0].broadcastable for x, (_, varies) in pairs
    ):
        return None
    return node.op(*(x.variable for x in inputs))


def _dimshuffle(node: Apply, x: Outside) -> Any:
    return x.variable.dimshuffle(0, *("x" if d == "x" else d + 1 for d in node.op.new_order))


def _dot(node: Apply, x: Outside, y: Outside) -> Any:
    lhs, rhs = node.inputs
    if {lhs.dtype, rhs.dtype} not in ({"float32"}, {"float64"}):
        return None
    if x.varies and y.varies:
        return _dot_of_steps(x.variable, y.variable)
    if x.varies:
        return _dot_by_weights(x.variable, y.variable)
    return tensor.dot(y.variable, x.variable.T) if rhs.ndim == 1 else None


def _dot_of_steps(lhs: Any, rhs: Any) -> Any:
    if lhs.ndim == rhs.ndim == 2:
        return (lhs * rhs).sum(1)
    if lhs.ndim == 2:
        return tensor.batched_dot(lhs.dimshuffle(0, "x", 1), rhs).dimshuffle(0, 2)
    return tensor.batched_dot(lhs, rhs) if rhs.ndim == 2 else None


def _dot_by_weights(lhs: Any, rhs: Any) -> Any:
    if lhs.ndim == 2:
        return tensor.dot(lhs, rhs)
    return split_steps(tensor.dot(join_steps(lhs), rhs), lhs)


def _sum(node: Apply, x: Outside) -> Any:
    axis = range(node.inputs[0].ndim) if node.op.axis is None else node.op.axis
    return Sum([d + 1 for d in axis], node.op.dtype, node.op.acc_dtype)(x.variable)


def _of_rows(node: Apply, x: Outside) -> Any:
    return split_steps(node.op(join_steps(x.variable)), x.variable)


def _join(node: Apply, axis: Outside, *inputs: Outside) -> Any:
    if not isinstance(axis.variable, gof.Constant):
        return None
    steps = next(get_length(x.variable, 0) for x in inputs if x.varies)
    tensors = [x if varies else tensor.alloc(x, steps, *get_lengths(x)) for x, varies in inputs]
    return tensor.join(int(axis.variable.data) % node.outputs[0].ndim + 1, *tensors)


def _subtensor(node: Apply, x: Outside, *indices: Outside) -> Any:
    if any(index.varies for index in indices):
        return None
    op = subtensor.Subtensor([slice(None), *node.op.idx_list])
    return op(x.variable, *(index.variable for index in indices))


def _reshape(node: Apply, x: Outside, shape: Outside) -> Any:
    shape_node = shape.variable.owner
    if isinstance(shape.variable, gof.Constant):
        sizes: Iterable[Any] = shape.variable.data.tolist()
    elif shape_node and isinstance(shape_node.op, tensor.opt.MakeVector):
        sizes = shape_node.inputs
    elif shape_node and isinstance(shape_node.op, Shape):
        sizes = get_lengths(shape_node.inputs[0])
    else:
        return None
    # reshape cannot compute the length that replaces -1 if there are no steps.
    if any(tensor.extract_constant(size) == -1 for size in sizes):
        return None
    return x.variable.reshape([get_length(x.variable, 0), *sizes], ndim=node.op.ndim + 1)


def _take(node: Apply, x: Outside, indices: Outside) -> Any:
    if not x.varies:
        rows = node.op(x.variable, join_steps(indices.variable))
        return split_steps(rows, indices.variable)
    if not isinstance(indices.variable, gof.Constant):
        return None
    order = 1, 0, *range(2, x.variable.ndim)
    return node.op(x.variable.dimshuffle(order), indices.variable).dimshuffle(order)


def _shape(node: Apply, x: Outside) -> Any:
    return tensor.stack(get_lengths(x.variable, 1)) if node.inputs[0].ndim else None


def _shape_i(node: Apply, x: Outside) -> Any:
    return get_length(x.variable, node.op.i + 1)


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
    # find_counterpart accepts these ops if all inputs are the same in all steps. Then, it does not
    # call the rule.
    tensor.Alloc: lambda *_: None,
    tensor.ScalarFromTensor: lambda *_: None,
    tensor.TensorFromScalar: lambda *_: None,
    tensor.opt.MakeVector: lambda *_: None,
}
