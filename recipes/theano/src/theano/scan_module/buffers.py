"""What scans keep their outputs in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from theano.tensor.subtensor import IncSubtensor

if TYPE_CHECKING:
    from theano.gof import Variable


def initial_state(buffer: Variable, n: int) -> Variable | None:
    """Return the n elements that a buffer begins with, if they were set in it, or None."""
    node = buffer.owner
    if not (
        node
        and isinstance(node.op, IncSubtensor)
        and node.op.set_instead_of_inc
        and isinstance(node.op.idx_list[0], slice)
    ):
        return None
    state = node.inputs[1]
    # An optimizer takes less than n elements, or less dimensions, where all are the same.
    whole = (
        state.ndim == buffer.ndim
        and state.broadcastable[1:] == buffer.broadcastable[1:]
        and (n == 1 or not state.broadcastable[0])
    )
    return state if whole else None


def backwards(buffer: Any, first: int, last: int) -> Any:
    """A buffer from its end to its beginning, without so many elements of the first and the last.

    One slice, where two or three would have to be merged.
    """
    return buffer[-last - 1 if last else None : first - 1 if first else None : -1]
