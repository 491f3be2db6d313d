"""Lock that serializes compilation in the threads of a process."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any

from theano.gof.graph_cache.claims import claims

# The thread that compiles holds this lock, because the state of optimizers and linkers is global.
lock = threading.RLock()


def serialize_compilation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function that compiles: only one thread of this process runs it at a time.

    Meanwhile, other processes wait if they compile the same function (graph_cache/claims.py).
    """

    @functools.wraps(function)
    def serialized(*args: Any, **kwargs: Any) -> Any:
        with lock, claims.making():
            return function(*args, **kwargs)

    return serialized


def forget_threads() -> None:
    """Replace the lock in a forked process: the thread that held it may not exist there."""
    global lock  # noqa: PLW0603 (the process has one lock)
    lock = threading.RLock()
    claims.forget()


# A forked process has only the thread that called fork.
os.register_at_fork(after_in_child=forget_threads)
