"""Placeholder for theano.sandbox.scan of Theano 0.6 and 0.7: calling scan raises an error."""

from __future__ import annotations

from typing import Any


def scan(*arguments: Any, **options: Any) -> Any:
    """Raise NotImplementedError, with instructions to call theano.scan instead.

    theano.scan cannot replace this function, which wrote its outputs into the caller's buffers.
    """
    raise NotImplementedError(
        "theano.sandbox.scan.scan is not in Theano 1.0: write theano.scan, with the initial states"
        " as outputs_info instead of states; its outputs do not contain the initial states"
    )
