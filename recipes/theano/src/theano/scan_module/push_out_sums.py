"""Replacement of a sum of products over a Scan's steps by one product outside of the Scan."""

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
    """Replace the last element of each sum by a product of the matrices of all steps.

    Args:
        fgraph: the graph of the Scan.
        sums: pairs of a number and two inner matrices. The number is the sum's position among the
            sit_sot outputs; each step adds the product of the matrices.
        outer_of: by inner matrix: the tensor of its values in all steps.
        args: the Scan's scan_args.
    """
    tensor: Any = theano.tensor
    for number, matrices in sums:
        # The steps and the summed dimension become one dimension: one large product is faster.
        lhs, rhs = (outer_of[matrix] for matrix in matrices)
        lhs = tensor.flatten(lhs.dimshuffle(1, 0, 2), ndim=2)
        shape = tensor.shape(rhs)
        rhs = rhs.reshape((shape[0] * shape[1], shape[2]))
        product = tensor.dot(lhs, rhs) + args.outer_in_sit_sot[number][0]
        last = args.outer_out_sit_sot[number].clients[0][0].outputs[0]
        fgraph.replace_all([(last, product)], reason="scanOp_pushout_output")
