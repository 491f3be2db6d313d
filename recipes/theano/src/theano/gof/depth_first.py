"""Recursion that is as deep as a graph is, which Python's own may not be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def walk(visit: Callable[[T], Iterable[T]], root: T) -> None:
    """Visit an item, and what its visit yields, each while the visit that yields it waits.

    Args:
        visit: a generator; what it would call itself with, it yields.
    """
    waiting = [iter(visit(root))]
    while waiting:
        for item in waiting[-1]:
            waiting.append(iter(visit(item)))
            break
        else:
            waiting.pop()
