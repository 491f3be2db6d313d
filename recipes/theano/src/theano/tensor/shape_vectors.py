"""Access to the elements of shape vectors, without a new node for each element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from theano.gof.graph import Constant

if TYPE_CHECKING:
    from theano.gof import Variable


def get_elements(vector: Variable) -> Sequence[Any] | Variable:
    """Return the elements of a vector as a sequence.

    Return the vector itself if it is neither a constant nor the result of MakeVector.
    """
    from theano.tensor.opt import MakeVector  # noqa: PLC0415 (it imports this module)

    if isinstance(vector, Constant):
        data: Sequence[Any] = vector.data
        return data
    if vector.owner and isinstance(vector.owner.op, MakeVector):
        inputs: list[Variable] = vector.owner.inputs
        return inputs
    return vector
