"""Buffers of a scan's outputs: lookup of the initial state, and reversed slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from theano.tensor.subtensor import IncSubtensor

if TYPE_CHECKING:
    from theano.gof import Variable


def find_initial_state(buffer: Variable, n: int) -> Variable | None:
    """Return the initial state in a scan's buffer, if the graph contains it.

    The buffer must be the result of set_subtensor, which sets the first n elements to the state.
    Return None for other buffers, and if the state has other dimensions than the n elements.
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


def reverse_buffer(buffer: Any, first: int, last: int) -> Any:
    """Slice a buffer in reverse, without the first `first` and the last `last` elements."""
    return buffer[-last - 1 if last else None : first - 1 if first else None : -1]
