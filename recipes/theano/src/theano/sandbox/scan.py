"""Name theano.scan to programs that call the scan of theano.sandbox, of Theano 0.6 and 0.7."""

from __future__ import annotations

from typing import Any


def scan(*arguments: Any, **options: Any) -> Any:
    """Raise NotImplementedError: it stored the outputs in buffers that its caller had made."""
    raise NotImplementedError(
        "theano.sandbox.scan.scan is not in Theano 1.0: write theano.scan, with the initial states"
        " as outputs_info instead of states; its outputs are without the initial states"
    )
