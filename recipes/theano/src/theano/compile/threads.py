"""Lock that serializes compilation in the threads of a process, with the claims of processes."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

from theano.gof.graph_cache.claims import claims

# Held by the thread that compiles: the state of optimizers and linkers is global.
lock = threading.RLock()


def compiles(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function that compiles: one thread runs it at a time, and it holds claims."""

    @functools.wraps(function)
    def serialized(*args: Any, **kwargs: Any) -> Any:
        with lock, claims.making():
            return function(*args, **kwargs)

    return serialized


def forget_threads() -> None:
    """Replace the lock in a forked process, where its holder may not exist."""
    global lock  # noqa: PLW0603 (the process has one lock)
    lock = threading.RLock()
    claims.forget()


# A forked process has only the thread that called fork.
os.register_at_fork(after_in_child=forget_threads)
