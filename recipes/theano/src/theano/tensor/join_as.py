"""Op JoinAs: Join that checks the length of each tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from theano import gof
from theano.tensor import basic

if TYPE_CHECKING:
    from theano.gof import Apply


class JoinAs(gof.Op):
    """Join tensors along an axis; raise ValueError if a length differs from its expected value.

    The first input is the vector of expected lengths. scan_module/join_products.py replaces several
    matrix products by a product of joined tensors. The separate products would check each length,
    but the joined product checks only the sum of the lengths.
    """

    __props__ = ("axis",)

    def __init__(self, axis: int) -> None:
        """Set the axis."""
        self.axis = axis

    def make_node(self, lengths: Any, *tensors: Any) -> Apply:
        """Make a node.

        Args:
            lengths: the expected lengths, a vector of integers.
            tensors: the tensors, as for Join.
        """
        joined = basic.join(self.axis, *tensors)
        return gof.Apply(self, [lengths, *tensors], [joined.type()])

    def perform(self, node: Apply, inputs: Sequence[Any], outputs: Sequence[list[Any]]) -> None:
        """Join the tensors.

        Raises:
            ValueError: a tensor's length differs from its expected value.
        """
        lengths, *tensors = inputs
        for length, tensor in zip(lengths, tensors, strict=True):
            if tensor.shape[self.axis] != length:
                raise ValueError(
                    f"Shape mismatch: a factor has {tensor.shape[self.axis]} elements where the"
                    f" other one has {length}."
                )
        outputs[0][0] = np.concatenate(tensors, self.axis)
