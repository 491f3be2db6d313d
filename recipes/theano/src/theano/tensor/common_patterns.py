"""The common broadcastable pattern of two variables."""

from __future__ import annotations

from theano.gof import Variable
from theano.tensor.basic import patternbroadcast
from theano.tensor.type import TensorType


def unify_patterns(x: Variable, y: Variable) -> tuple[Variable, Variable]:
    """Return two variables whose dimensions are broadcastable only if both variables' are.

    For example, the slice x[:1:-1] of a row x is not broadcastable in any dimension.

    Args:
        x: a variable.
        y: another variable. The variables are returned unchanged if one of them is not a tensor, or
            if they have different numbers of dimensions.
    """
    types = x.type, y.type
    if not all(isinstance(type, TensorType) for type in types) or x.ndim != y.ndim:
        return x, y
    pattern = [a and b for a, b in zip(x.broadcastable, y.broadcastable, strict=True)]
    return patternbroadcast(x, pattern), patternbroadcast(y, pattern)
