"""Replace theano.sandbox.scan, of Theano 0.6 and 0.7, by an error that names theano.scan."""

from __future__ import annotations

from typing import Any


def scan(*arguments: Any, **options: Any) -> Any:
    """Raise NotImplementedError: this function stored its outputs in buffers of the caller."""
    raise NotImplementedError(
        "theano.sandbox.scan.scan is not in Theano 1.0: write theano.scan, with the initial states"
        " as outputs_info instead of states; its outputs are without the initial states"
    )
