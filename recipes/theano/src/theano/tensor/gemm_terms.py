"""Check of the terms of a sum before the search for a Gemm that computes two of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from theano.tensor.elemwise import DimShuffle

if TYPE_CHECKING:
    from theano.gof import Variable


def contain_product(terms: Iterable[Any]) -> bool:
    """Return whether a Dot22, or a DimShuffle of a Dot22, computes a term.

    Without such a term, blas._gemm_from_factored_list finds no Gemm.

    Args:
        terms: pairs of a scale and an array, and other objects.
    """
    return any(isinstance(term, tuple) and is_product(term[1]) for term in terms)


def is_product(x: Variable) -> bool:
    """Return whether a Dot22, or a DimShuffle of a Dot22, computes a variable."""
    from theano.tensor.blas import Dot22  # noqa: PLC0415 (it imports this module)

    owner = x.owner
    if owner is not None and isinstance(owner.op, DimShuffle):
        owner = owner.inputs[0].owner
    return owner is not None and isinstance(owner.op, Dot22)
