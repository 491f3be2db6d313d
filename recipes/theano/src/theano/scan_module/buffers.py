"""Buffers of a scan's outputs: lookup of the initial state, and reversed slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from theano.tensor.subtensor import IncSubtensor

if TYPE_CHECKING:
    from theano.gof import Variable


def initial_state(buffer: Variable, n: int) -> Variable | None:
    """Return the initial state in a scan's buffer, if the graph contains it.

    The buffer must be the result of set_subtensor, which sets the first n elements to the state.
    Otherwise, and if the state has other dimensions than these elements, return None.
    """
    node = buffer.owner
    if not (
        node
        and isinstance(node.op, IncSubtensor)
        and node.op.set_instead_of_inc
        and isinstance(node.op.idx_list[0], slice)
    ):
        return None
    state = node.inputs[1]
    # Optimizers replace a state with equal elements by a state with fewer elements or dimensions,
    # which set_subtensor broadcasts.
    whole = (
        state.ndim == buffer.ndim
        and state.broadcastable[1:] == buffer.broadcastable[1:]
        and (n == 1 or not state.broadcastable[0])
    )
    return state if whole else None


def backwards(buffer: Any, first: int, last: int) -> Any:
    """Reverse a buffer without its first `first` and its last `last` elements, by one slice."""
    return buffer[-last - 1 if last else None : first - 1 if first else None : -1]
