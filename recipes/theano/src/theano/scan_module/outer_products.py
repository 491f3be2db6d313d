"""Sums of products over the steps of a Scan, each computed as one product outside of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import theano

if TYPE_CHECKING:
    from theano.gof import Variable
    from theano.gof.fg import FunctionGraph


def replace_sums(
    fgraph: FunctionGraph,
    sums: Iterable[tuple[int, Sequence[Variable]]],
    outer_of: Mapping[Variable, Any],
    args: Any,
) -> None:
    """Replace the last element of each sum.

    Args:
        sums: the number of each among the outputs that keep their last step alone, and the two
            matrices of a step whose product it adds.
        outer_of: of each such matrix, the tensor that has it of all steps.
        args: the Scan's scan_args.
    """
    tensor: Any = theano.tensor
    for number, matrices in sums:
        # Steps and the dimension that is summed become one, as one large product is faster.
        left, right = (outer_of[matrix] for matrix in matrices)
        left = tensor.flatten(left.dimshuffle(1, 0, 2), ndim=2)
        shape = tensor.shape(right)
        right = right.reshape((shape[0] * shape[1], shape[2]))
        product = tensor.dot(left, right) + args.outer_in_sit_sot[number][0]
        last = args.outer_out_sit_sot[number].clients[0][0].outputs[0]
        fgraph.replace_all([(last, product)], reason="scanOp_pushout_output")
