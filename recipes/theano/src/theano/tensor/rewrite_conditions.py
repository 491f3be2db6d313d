"""Necessary conditions under which local optimizers change a node.

Most tries of local optimizers change nothing. A condition in this module is False only for nodes
that the optimizer leaves unchanged. Evaluating it takes less time than a try.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from theano import compile, gof, scalar
from theano.scalar import inverses
from theano.tensor import basic, elemwise, opt
from theano.tensor.nnet import nnet

if TYPE_CHECKING:
    from theano.gof import Apply, Variable

# A function of a node.
Condition = Callable[["Apply"], bool]

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
}

# The scalar ops of sums and of products.
SUMS = scalar.Add, scalar.Sub, scalar.Neg
PRODUCTS = scalar.Mul, scalar.TrueDiv, scalar.Inv


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
    return CONDITIONS.get(lopt)


def make_pattern_condition(lopt: Any) -> Condition | None:
    """Return the condition of a PatternSub, or None if it has none.

    Where the pattern of an input is an expression, the expression's op must compute the input.
    """
    if lopt.get_nodes is not None or not isinstance(lopt.in_pattern, (list, tuple)):
        return None
    patterns = lopt.in_pattern[1:]
    positions = [i for i, part in enumerate(patterns) if isinstance(part, (list, tuple))]
    if not positions:
        return None
    if lopt.skip_identities_fn is not None:
        return None

    def has_expressions(node: Apply) -> bool:
        if len(node.inputs) != len(patterns):
            return False
        for i in positions:
            owner = node.inputs[i].owner
            if owner is None or owner.op != patterns[i][0]:
                return False
        return True

    return has_expressions


def make_canonizer_condition(lopt: Any) -> Condition | None:
    """Return the condition of a Canonizer of sums or products, or None if it has none.

    A Canonizer of sums can simplify a sum only if an input is a constant, or if a DimShuffle, an
    addition, a subtraction or a negation computes an input. A Canonizer of products is similar.
    SIMPLIFIERS change only fractions, so they do not need another condition.
    """
    if any(simplifier not in SIMPLIFIERS for _, simplifier in lopt.external_simplifiers):
        return None
    scalar_ops = tuple(type(op.scalar_op) for op in (lopt.main, lopt.inverse, lopt.reciprocal))

    def can_be_simplified(node: Apply) -> bool:
        return not isinstance(getattr(node.op, "scalar_op", None), scalar_ops[0]) or any(
            isinstance(x, gof.Constant) or is_computed_by(scalar_ops, x) for x in node.inputs
        )

    return can_be_simplified


# The external simplifiers for which make_canonizer_condition is right.
SIMPLIFIERS = opt.check_for_x_over_absX, nnet.softmax_simplifier


def is_computed_by(scalar_ops: tuple[type, ...], x: Variable) -> bool:
    """Return whether a DimShuffle, or an Elemwise of one of the scalar ops, computes a variable."""
    if x.owner is None:
        return False
    op = x.owner.op
    return isinstance(op, elemwise.DimShuffle) or isinstance(
        getattr(op, "scalar_op", None), scalar_ops
    )


def may_be_constant(x: Variable, depth: int = 10) -> bool:
    """Return False only if basic.get_scalar_constant_value finds no constant value of a variable.

    Args:
        x: the variable.
        depth: the number of nodes that are followed; beyond them, the result is True.
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
    opt.constant_folding: lambda node: not node.inputs or isinstance(node.inputs[0], gof.Constant),
    opt.local_elemwise_alloc: lambda node: any(
        x.owner is not None and isinstance(x.owner.op, (basic.Alloc, elemwise.DimShuffle))
        for x in node.inputs
    ),
    opt.local_fill_sink: lambda node: any(is_computed_by((scalar.Second,), x) for x in node.inputs),
    opt.local_0_dot_x: lambda node: any(isinstance(x, gof.Constant) for x in node.inputs),
    opt.local_mul_zero: lambda node: any(map(may_be_constant, node.inputs)),
    opt.local_greedy_distributor: lambda node: (
        not isinstance(getattr(node.op, "scalar_op", None), scalar.Mul)
        or any(is_computed_by(SUMS + PRODUCTS, x) for x in node.inputs)
    ),
}
