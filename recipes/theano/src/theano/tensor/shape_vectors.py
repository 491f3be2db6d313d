"""Elements of shape vectors, read without a node for each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from theano.gof.graph import Constant

if TYPE_CHECKING:
    from theano.gof import Variable


def elements(vector: Variable) -> Sequence[Any] | Variable:
    """Return a sequence of a vector's elements, or the vector itself if they have no variables."""
    from theano.tensor.opt import MakeVector  # noqa: PLC0415 (it imports this)

    if isinstance(vector, Constant):
        data: Sequence[Any] = vector.data
        return data
    if vector.owner and isinstance(vector.owner.op, MakeVector):
        inputs: list[Variable] = vector.owner.inputs
        return inputs
    return vector
