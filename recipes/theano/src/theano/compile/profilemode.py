"""Replace ProfileMode of Theano 0.3 to 0.8 by an error that names the flag profile."""

from __future__ import annotations

from typing import Any


class ProfileMode:
    """Raise NotImplementedError, and name the flag."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Raise NotImplementedError."""
        raise NotImplementedError(
            "theano.ProfileMode is not in Theano 1.0: set the flag profile=True, or run"
            " theano-fast profile FILE"
        )
