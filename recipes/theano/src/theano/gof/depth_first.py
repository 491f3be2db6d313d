"""Depth-first traversal with a stack of generators, to which no recursion limit applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def walk(visit: Callable[[T], Iterable[T]], root: T) -> None:
    """Visit an item and, recursively, each item that a visit yields, in depth-first order.

    Args:
        visit: a generator function. Instead of calling itself with an item, it yields the item.
            When the generator resumes, the visit of that item is complete.
        root: the first item to visit.
    """
    visits = [iter(visit(root))]
    while visits:
        for item in visits[-1]:
            visits.append(iter(visit(item)))
            break
        else:
            visits.pop()
