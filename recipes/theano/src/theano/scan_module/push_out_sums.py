"""Replacement of a Scan's sum of matrix products by one larger product outside of the Scan."""

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
    """Replace the final value of each sum by one product of the matrices of all steps.

    Args:
        fgraph: the graph of the Scan.
        sums: pairs of a number and two inner matrices, whose product each step adds to the sum. The
            number is the position of the sum among the Scan's sit_sot outputs.
        outer_of: maps an inner matrix to the tensor of its values in all steps.
        args: the scan_args of the Scan.
    """
    tensor: Any = theano.tensor
    for number, matrices in sums:
        # Join the dimension of the steps with the summed dimension, because one large product is
        # faster than a product in each step.
        lhs, rhs = (outer_of[matrix] for matrix in matrices)
        lhs = tensor.flatten(lhs.dimshuffle(1, 0, 2), ndim=2)
        shape = tensor.shape(rhs)
        rhs = rhs.reshape((shape[0] * shape[1], shape[2]))
        product = tensor.dot(lhs, rhs) + args.outer_in_sit_sot[number][0]
        last = args.outer_out_sit_sot[number].clients[0][0].outputs[0]
        fgraph.replace_all([(last, product)], reason="scanOp_pushout_output")
