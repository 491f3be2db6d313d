"""Join of tensors whose lengths must be as told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from theano import gof
from theano.tensor import basic

if TYPE_CHECKING:
    from theano.gof import Apply


class JoinAs(gof.Op):
    """Join tensors, each of which must be as long as it is told: the first input says so.

    Products need that of the parts of a joined product; of the joined one it is not known.
    """

    __props__ = ("axis",)

    def __init__(self, axis: int) -> None:
        """Join along an axis."""
        self.axis = axis

    def make_node(self, lengths: Any, *tensors: Any) -> Apply:
        """Make a node, of a vector of integers, and tensors that Join can join."""
        joined = basic.join(self.axis, *tensors)
        return gof.Apply(self, [lengths, *tensors], [joined.type()])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Sequence[list[Any]]) -> None:
        """Join.

        Raises:
            ValueError: a tensor has another length.
        """
        lengths, *tensors = inputs
        for length, each in zip(lengths, tensors, strict=True):
            if each.shape[self.axis] != length:
                raise ValueError(
                    f"Shape mismatch: a factor has {each.shape[self.axis]} elements where the"
                    f" other one has {length}."
                )
        outputs[0][0] = np.concatenate(tensors, self.axis)
