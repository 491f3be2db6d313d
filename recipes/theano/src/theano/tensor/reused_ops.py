"""Reuse of ops within a pass of an optimizer: equal parts of a graph get the same op.

A graph of many equal layers has many equal Elemwise nodes. A fusion makes one Composite for all
equal groups of nodes, so the Composite's graph and C code are made once.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from theano import config

Result = TypeVar("Result")


class Memo(threading.local):
    """The results of the pass that the current thread runs.

    Attributes:
        results: maps a key to a result and to the ops whose ids are in the key; None outside of a
            pass. The references to the ops keep their ids valid.
    """

    results: dict[Hashable, tuple[Any, Sequence[Any]]] | None = None


memo = Memo()


def reuse_ops(apply: Callable[..., Result]) -> Callable[..., Result]:
    """Decorate a function that makes a pass over a graph: `remember` works until it returns.

    The results are not kept for longer, because flags that change C code may change between passes.
    With test values, nothing is remembered, because a scalar variable has the test value of the
    array that it represents.
    """

    @functools.wraps(apply)
    def apply_with_memo(*args: Any, **kwargs: Any) -> Result:
        if memo.results is not None or config.compute_test_value != "off":
            return apply(*args, **kwargs)
        memo.results = {}
        try:
            return apply(*args, **kwargs)
        finally:
            memo.results = None

    return apply_with_memo


def remember(key: Hashable, ops: Sequence[Any], make: Callable[[], Result]) -> Result:
    """Return the result of a function, which is called once per key and pass.

    Args:
        key: everything on which the result depends. It begins with the name of the caller. Ops are
            represented by their ids, because equal ops can have different names.
        ops: the ops whose ids are in the key.
        make: the function.
    """
    if memo.results is None:
        return make()
    if key not in memo.results:
        memo.results[key] = make(), ops
    result: Result = memo.results[key][0]
    return result
