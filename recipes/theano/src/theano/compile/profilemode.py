"""Placeholder for ProfileMode of Theano 0.3 to 0.8; the flag profile replaces it."""

from __future__ import annotations

from typing import Any


class ProfileMode:
    """Placeholder whose constructor raises an error that names the flag profile."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Raise NotImplementedError."""
        raise NotImplementedError(
            "theano.ProfileMode is not in Theano 1.0: set the flag profile=True, or run"
            " theano-fast profile FILE"
        )
