"""Fusion of an Elemwise node with the Elemwise nodes that compute its inputs, into a Composite."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from theano import config, gof, scalar
from theano.gof.utils import MethodNotDefined
from theano.tensor.reused_ops import remember

if TYPE_CHECKING:
    from theano.gof import Apply, Variable

_logger = logging.getLogger("theano.tensor.opt")

# Functions that hash, print or pickle a Composite recurse for each op of a chain. Python's
# recursion limit allows chains of a few hundred ops.
MAX_COMPOSITE_DEPTH = 40

# A scalar operand of the fused node: the number of an input of the new node, or a scalar op and the
# numbers of its inputs.
Operand = int | tuple[Any, tuple[int, ...]]


def fuse_node(
    node: Apply,
    op_class: Any,
    max_inputs: Callable[[Apply], int],
    make_op: Callable[[Apply, Any], Any] | None = None,
) -> list[Variable] | bool | None:
    """Fuse a node with the nodes that compute its inputs, until no further fusion is possible.

    Args:
        node: the node.
        op_class: the class of the ops that are fused, such as Elemwise.
        max_inputs: a function that returns the largest number of inputs of the new node.
        make_op: a function that returns the new op for a node and a Composite. The default is
            op_class, called with the Composite.

    Returns:
        The outputs of the new node; False if nothing was fused; None if the node has several
        outputs.
    """
    if type(node.op) is not op_class:
        return False
    if len(node.outputs) > 1:
        return None
    new = node
    while type(new.op) is op_class and (fused := fuse_once(new, op_class, max_inputs, make_op)):
        new = fused
    outputs: list[Variable] = new.outputs
    return outputs if new is not node else False


def fuse_once(
    node: Apply,
    op_class: Any,
    max_inputs: Callable[[Apply], int],
    make_op: Callable[[Apply, Any], Any] | None,
) -> Apply | None:
    """Fuse a node with the nodes that compute its inputs; return None if nothing was fused.

    See `fuse_node` for the arguments.
    """
    limit = max_inputs(node)
    # The number of inputs of the new node, if no more inputs are fused.
    n_inputs = len(node.inputs)
    inputs: list[Variable] = []
    operands: list[Operand] = []
    for variable in node.inputs:
        if is_fusible(variable, node, op_class):
            scalar_op = variable.owner.op.scalar_op
            added = [x for x in dict.fromkeys(variable.owner.inputs) if x not in inputs]
            fused_inputs = inputs + added
            n_fused_inputs = n_inputs + len(added) - 1 - sum(x in node.inputs for x in added)
            if n_fused_inputs <= limit and has_c_code(scalar_op, variable.owner.inputs):
                numbers = tuple(fused_inputs.index(x) for x in variable.owner.inputs)
                operands.append((scalar_op, numbers))
                inputs, n_inputs = fused_inputs, n_fused_inputs
                continue
        # The node can have the same variable as input several times.
        if inputs.count(variable) == node.inputs.count(variable):
            operands.append(inputs.index(variable))
        else:
            operands.append(len(inputs))
            inputs.append(variable)
    if all(isinstance(operand, int) for operand in operands):
        return None
    assert n_inputs == len(inputs), "the number of inputs was predicted wrongly"
    composite = find_composite(node.op.scalar_op, operands, inputs)
    if composite is None:
        return None
    if make_op is None:
        op = remember(("op", id(composite)), [composite], lambda: op_class(composite))
    else:
        op = make_op(node, composite)
    # Call the op instead of make_node, so that the output gets a test value and a stack trace.
    new: Apply = op(*inputs).owner
    assert len(new.outputs) == 1
    assert new.outputs[0].dtype == node.outputs[0].dtype
    if len(new.inputs) > limit:
        _logger.info("loop fusion failed because %s would have too many inputs", op)
        return None
    return new


def is_fusible(variable: Variable, node: Apply, op_class: Any) -> bool:
    """Return whether the node that computes a variable may be fused with its only reader.

    Nodes with different broadcastable patterns are not fused, because a fused loop would repeat
    computations.
    """
    producer = variable.owner
    return (
        producer is not None
        and isinstance(producer.op, op_class)
        and len(producer.outputs) == 1
        and len({client for client, _ in variable.clients}) == 1
        and variable.broadcastable == node.outputs[0].broadcastable
        and node.op.scalar_op.depth + producer.op.scalar_op.depth <= MAX_COMPOSITE_DEPTH
    )


def make_scalars(arrays: Sequence[Variable]) -> list[Variable]:
    """Make a scalar variable for each array, with the array's test value if flags require it."""
    scalars = [scalar.get_scalar_type(array.dtype).make_variable() for array in arrays]
    if config.compute_test_value != "off":
        for array, variable in zip(arrays, scalars, strict=True):
            with contextlib.suppress(AttributeError):
                value = gof.op.get_test_value(array)
                variable.tag.test_value = value.flatten()[0] if value.size > 0 else value
    return scalars


def has_c_code(scalar_op: Any, arrays: Sequence[Variable]) -> bool:
    """Return whether a scalar op has C code for the dtypes of arrays."""
    dtypes = tuple(array.dtype for array in arrays)
    numbers = tuple(map(arrays.index, arrays))

    def generate_code() -> bool:
        scalars = make_scalars(arrays)
        return can_generate(scalar_op, scalar_op(*(scalars[i] for i in numbers), return_list=True))

    return remember(("C code", id(scalar_op), dtypes, numbers), [scalar_op], generate_code)


def can_generate(scalar_op: Any, outputs: Sequence[Variable]) -> bool:
    """Return whether a scalar op generates C code for the node with the given outputs."""
    node = outputs[0].owner
    names = ["x"] * len(node.inputs), ["z"] * len(outputs)
    try:
        scalar_op.c_code(node, "test_presence_of_c_code", *names, {"fail": "%(fail)s"})
    except (MethodNotDefined, NotImplementedError):
        _logger.info("%s has no C code, so it is not fused and can be slow", scalar_op)
        return False
    return True


def find_composite(
    scalar_op: Any, operands: Sequence[Operand], arrays: Sequence[Variable]
) -> Any | None:
    """Return the Composite that applies a scalar op to operands.

    Return the same Composite for equal arguments.

    Args:
        scalar_op: the scalar op.
        operands: the operands; their numbers are positions in `arrays`.
        arrays: the inputs of the new node.

    Returns:
        The Composite, or None if the scalar op has no C code.
    """

    def make() -> Any | None:
        scalars = make_scalars(arrays)
        outputs = scalar_op(
            *(
                scalars[operand]
                if isinstance(operand, int)
                else operand[0](*(scalars[i] for i in operand[1]))
                for operand in operands
            ),
            return_list=True,
        )
        if not can_generate(outputs[0].owner.op, outputs):
            return None
        return scalar.Composite(scalars, outputs)

    key = tuple(
        operand if isinstance(operand, int) else (id(operand[0]), operand[1])
        for operand in operands
    )
    dtypes = tuple(array.dtype for array in arrays)
    ops = [scalar_op, *(operand[0] for operand in operands if not isinstance(operand, int))]
    return remember(("composite", id(scalar_op), key, dtypes), ops, make)
