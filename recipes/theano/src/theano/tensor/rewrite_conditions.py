"""Necessary conditions under which local optimizers change a node.

Most tries of local optimizers change nothing. A condition in this module is False only for nodes
that the optimizer leaves unchanged. Evaluating it takes less time than a try.

The functions contain loops, because any() and all() of a generator take twice as long.
"""

# ruff: noqa: SIM110

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from theano import compile, gof, scalar
from theano.compile import builders
from theano.scalar import inverses
from theano.scan_module import scan_op, scan_opt
from theano.tensor import basic, elemwise, opt, subtensor
from theano.tensor.nnet import nnet, sigm

if TYPE_CHECKING:
    from theano.gof import Apply, Variable

# A function of a node.
Condition = Callable[["Apply"], bool]
# A function of an input of a node.
InputTest = Callable[["Variable"], bool]

# Maps a local optimizer of Elemwise nodes to the classes of scalar ops that it changes.
SCALAR_OPS: dict[Any, tuple[type, ...]] = {
    opt.local_useless_elemwise_comparison: (
        scalar.LT,
        scalar.GT,
        scalar.LE,
        scalar.GE,
        scalar.EQ,
        scalar.Minimum,
        scalar.Maximum,
    ),
    opt.local_useless_elemwise: (
        scalar.EQ,
        scalar.NEQ,
        scalar.Mul,
        scalar.Add,
        scalar.Identity,
        scalar.AND,
        scalar.OR,
        scalar.XOR,
    ),
    opt.local_expm1: (scalar.Sub,),
    opt.local_func_inv: inverses.INVERTIBLE,
    opt.local_cast_cast: (scalar.Cast,),
    opt.local_elemwise_sub_zeros: (scalar.Sub,),
    opt.local_useless_composite: (scalar.Composite,),
    opt.local_useless_switch: (scalar.Switch,),
    nnet.local_logsoftmax: (scalar.Log,),
}

# Maps a local optimizer that Theano would try on all nodes to the classes of ops that it changes.
OPS: dict[Any, tuple[type, ...]] = {
    opt.local_view_op: (compile.ops.ViewOp,),
    opt.local_track_shape_i: (compile.ops.Shape_i,),
    scan_opt.remove_constants_and_unused_inputs_scan: (scan_op.Scan,),
    builders.inline_ofg_expansion: (builders.OpFromGraph,),
}

# Conditions use these names, because each lookup in another module takes time.
DimShuffle = elemwise.DimShuffle
# The scalar ops of sums.
SUMS = scalar.Add, scalar.Sub, scalar.Neg
# The ops and scalar ops through which has_factor finds the factors of a variable.
MULTIPLES = DimShuffle, scalar.Mul, scalar.TrueDiv, scalar.Inv, scalar.Neg


def find_op_condition(lopt: Any) -> Callable[[Any], bool] | None:
    """Return a function that returns False for an op if the optimizer changes no node of the op.

    Return None if the optimizer has no condition on ops.
    """
    if lopt in SCALAR_OPS:
        scalar_ops = SCALAR_OPS[lopt]
        return lambda op: isinstance(getattr(op, "scalar_op", None), scalar_ops)
    if lopt in OPS:
        ops = OPS[lopt]
        return lambda op: isinstance(op, ops)
    return None


def find_condition(lopt: Any) -> Condition | None:
    """Return the condition of a local optimizer on nodes, or None if it has none.

    The condition returns False only for nodes that the optimizer leaves unchanged.
    """
    if type(lopt) is gof.PatternSub:
        return make_pattern_condition(lopt)
    if type(lopt) is opt.Canonizer:
        return make_canonizer_condition(lopt)
    if type(lopt) is gof.LocalOptGroup:
        return make_group_condition(lopt)
    if lopt in OPS:
        ops = OPS[lopt]
        return lambda node: isinstance(node.op, ops)
    return CONDITIONS.get(lopt)


def make_group_condition(group: Any) -> Condition:
    """Return the condition of a LocalOptGroup: an optimizer of the group tracks the node's op."""
    keys = [key for key, lopts in group.track_map.items() if lopts]
    types = {key for key in keys if isinstance(key, type)}
    ops = [key for key in keys if not isinstance(key, type)]
    return lambda node: None in ops or type(node.op) in types or node.op in ops


def make_pattern_condition(lopt: Any) -> Condition | None:
    """Return the condition of a PatternSub, or None if it has none.

    Where the pattern of an input is an expression, the expression's op must compute the input.
    """
    if lopt.get_nodes is not None or not isinstance(lopt.in_pattern, (list, tuple)):
        return None
    if lopt.skip_identities_fn is not None:
        return None
    parts = find_expressions(lopt.in_pattern)
    return (lambda node: matches(parts, node.inputs)) if parts[1] else None


# The expressions in a pattern: the number of the pattern's inputs, and for each input that is an
# expression its position, its op and its own expressions.
Expressions = tuple[int, list[tuple[int, Any, Any]]]


def find_expressions(pattern: Any) -> Expressions:
    """Return the expressions among the inputs of a PatternSub's pattern."""
    inputs = pattern[1:]
    return len(inputs), [
        (i, part[0], find_expressions(part))
        for i, part in enumerate(inputs)
        if isinstance(part, (list, tuple))
    ]


def matches(expressions: Expressions, inputs: list[Variable]) -> bool:
    """Return whether the ops of a pattern's expressions compute the given inputs."""
    n_inputs, parts = expressions
    if len(inputs) != n_inputs:
        return False
    for i, op, inner in parts:
        owner = inputs[i].owner
        if owner is None or owner.op != op or not matches(inner, owner.inputs):
            return False
    return True


def make_canonizer_condition(lopt: Any) -> Condition | None:
    """Return the condition of a Canonizer of sums or products, or None if it has none.

    A Canonizer of sums can simplify a sum only in these cases:

    - An input is a constant. A constant that is the first input does not count if it is not zero
      and has the dtype of the sum, because it need not be moved.
    - A DimShuffle, an addition, a subtraction or a negation computes an input.
    - The sum is a difference of equal variables.

    A Canonizer of products is similar. SIMPLIFIERS change only fractions.
    """
    if any(simplifier not in SIMPLIFIERS for _, simplifier in lopt.external_simplifiers):
        return None
    scalar_ops = tuple(type(op.scalar_op) for op in (lopt.main, lopt.inverse, lopt.reciprocal))
    neutral = NEUTRAL.get(lopt.calculate)
    # SIMPLIFIERS can change a fraction, so a Canonizer with them is tried on all fractions.
    is_simple = neutral is not None and not lopt.external_simplifiers
    simple_ops = scalar_ops if is_simple else scalar_ops[:1]
    part_ops = DimShuffle, *scalar_ops

    def is_moved(constant: Variable, out: Variable) -> bool:
        """Return whether the Canonizer may move or remove a constant first input of a sum."""
        value = lopt.get_constant(constant)
        dtype: str = out.type.dtype
        return (
            value is None
            or neutral is None
            or not dtype.startswith("float")
            or value.dtype != dtype
            or bool(value == neutral)
        )

    def can_be_simplified(node: Apply) -> bool:
        if not isinstance(getattr(node.op, "scalar_op", None), simple_ops):
            return True
        first, *others = node.inputs
        for x in others:
            if isinstance(x, gof.Constant) or is_computed_by(part_ops, x):
                return True
        if isinstance(first, gof.Constant):
            is_sum = isinstance(node.op.scalar_op, scalar_ops[0])
            return not is_sum or is_moved(first, node.outputs[0])
        return is_computed_by(part_ops, first) or (
            isinstance(node.op.scalar_op, scalar_ops[1]) and first is others[0]
        )

    return can_be_simplified


# The neutral element of each function that computes the constant of a sum or a product.
NEUTRAL: dict[Any, int] = {opt.add_calculate: 0, opt.mul_calculate: 1}
# The external simplifiers for which make_canonizer_condition is right.
SIMPLIFIERS = opt.check_for_x_over_absX, nnet.softmax_simplifier


def is_computed_by(classes: tuple[type, ...], x: Variable) -> bool:
    """Return whether the op, or the scalar op, that computes a variable has one of the classes."""
    owner = x.owner
    if owner is None:
        return False
    op = owner.op
    return isinstance(getattr(op, "scalar_op", op), classes)


def has_factor(scalar_ops: tuple[type, ...], x: Variable, depth: int = 10) -> bool:
    """Return whether one of the scalar ops may compute a factor of a variable.

    The function searches products, quotients, negations and DimShuffles for factors.

    Args:
        scalar_ops: the classes of scalar ops.
        x: the variable.
        depth: the number of levels of nodes to search; if there are more levels, return True.
    """
    owner = x.owner
    if owner is None:
        return False
    if depth == 0 or is_computed_by(scalar_ops, x):
        return True
    if not is_computed_by(MULTIPLES, x):
        return False
    for factor in owner.inputs:
        if has_factor(scalar_ops, factor, depth - 1):
            return True
    return False


def may_be_zero(x: Variable) -> bool:
    """Return whether a variable may have the constant value zero.

    If False, basic.get_scalar_constant_value does not return zero.
    """
    if isinstance(x, gof.Constant):
        data = x.data
        return not isinstance(data, np.ndarray) or data.size != 1 or bool(data.item() == 0)
    return x.owner is not None and may_be_constant(x)


def has_only_constants(node: Apply) -> bool:
    """Return whether all inputs of a node are constants."""
    for x in node.inputs:
        if not isinstance(x, gof.Constant):
            return False
    return True


def has_other_dtype(node: Apply) -> bool:
    """Return whether an input of a node has another dtype than the first output."""
    dtype = getattr(node.outputs[0].type, "dtype", None)
    for x in node.inputs:
        if getattr(x.type, "dtype", None) != dtype:
            return True
    return False


def is_sum_or_product(node: Apply) -> bool:
    """Return whether a node is a sum or a product of several variables."""
    scalar_op = getattr(node.op, "scalar_op", None)
    return len(node.inputs) > 1 and isinstance(scalar_op, (scalar.Add, scalar.Mul))


def make_input_condition(test: InputTest) -> Condition:
    """Return the condition that a test is True for an input of a node."""

    def has_such_input(node: Apply) -> bool:
        for x in node.inputs:
            if test(x):
                return True
        return False

    return has_such_input


def make_owner_condition(*classes: type) -> Condition:
    """Return the condition that an op, or a scalar op, of one of the classes computes an input."""

    # make_input_condition with is_computed_by would take longer: it calls a function per input.
    def reads_op(node: Apply) -> bool:
        for x in node.inputs:
            owner = x.owner
            if owner is not None:
                op = owner.op
                if isinstance(getattr(op, "scalar_op", op), classes):
                    return True
        return False

    return reads_op


def make_first_input_condition(*scalar_ops: type) -> Condition:
    """Return the condition that an Elemwise of one of the scalar ops computes the first input."""
    return lambda node: bool(node.inputs) and is_computed_by(scalar_ops, node.inputs[0])


def may_be_constant(x: Variable, depth: int = 10) -> bool:
    """Return whether a variable may have a constant value.

    If False, basic.get_scalar_constant_value finds no constant value.

    Args:
        x: the variable.
        depth: the number of levels of nodes to search; if there are more levels, return True.
    """
    if isinstance(x, gof.Constant) or depth == 0:
        return True
    if x.owner is None:
        return False
    op = x.owner.op
    if isinstance(op, elemwise.Elemwise) and not isinstance(op.scalar_op, scalar.Second):
        return isinstance(op.scalar_op, basic.get_scalar_constant_value_elemwises) and all(
            may_be_constant(argument, depth - 1) for argument in x.owner.inputs
        )
    return not isinstance(op, basic.Dot)


# Maps other local optimizers to their conditions.
CONDITIONS: dict[Any, Condition] = {
    opt.constant_folding: has_only_constants,
    opt.local_elemwise_alloc: make_owner_condition(basic.Alloc, DimShuffle),
    opt.local_IncSubtensor_serialize: make_owner_condition(
        subtensor.IncSubtensor, subtensor.AdvancedIncSubtensor1, subtensor.AdvancedIncSubtensor
    ),
    opt.local_fill_sink: make_owner_condition(DimShuffle, scalar.Second),
    opt.local_0_dot_x: make_input_condition(lambda x: isinstance(x, gof.Constant)),
    opt.local_mul_zero: make_input_condition(may_be_zero),
    opt.local_add_specialize: make_input_condition(may_be_zero),
    opt.local_useless_elemwise: lambda node: not is_sum_or_product(node),
    opt.local_upcast_elemwise_constant_inputs: has_other_dtype,
    opt.local_greedy_distributor: make_input_condition(lambda x: has_factor(SUMS, x)),
    opt.local_abs_merge: make_owner_condition(scalar.Abs),
    opt.local_merge_switch_same_cond: make_first_input_condition(scalar.Switch),
    opt.local_mul_switch_sink: make_owner_condition(scalar.Switch),
    opt.local_mul_to_sqr: lambda node: node.inputs[:1] == node.inputs[-1:],
    opt.local_alloc_unary: lambda node: len(node.inputs) == 1,
    opt.local_expm1: make_first_input_condition(scalar.Exp),
    sigm.local_sigm_times_exp: make_input_condition(lambda x: has_factor((scalar.Exp,), x)),
}
