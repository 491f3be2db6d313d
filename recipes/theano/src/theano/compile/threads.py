"""What belongs to one thread at a time, and to one process."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

from theano.gof.graph_cache.claims import claims

# Held by the thread that compiles. What optimizers and linkers keep, they keep for the process.
lock = threading.RLock()


def compiles(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate what compiles: other threads that call it wait, and processes for the function."""

    @functools.wraps(function)
    def in_turn(*args: Any, **kwargs: Any) -> Any:
        with lock, claims.making():
            return function(*args, **kwargs)

    return in_turn


def forget_threads() -> None:
    """Make another lock: no thread of this process holds it, or could release it."""
    global lock  # noqa: PLW0603 (one of the process)
    lock = threading.RLock()
    claims.forget()


# A process is forked with the thread that forked it alone.
os.register_at_fork(after_in_child=forget_threads)
