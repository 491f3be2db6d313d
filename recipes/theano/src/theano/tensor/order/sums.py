"""Sums of terms times factors."""

from __future__ import annotations

# {term: factor}. Terms are numbers; ONE stands for 1 itself, and is in each sum.
Sum = dict[int, int]
ONE = 0


def add(one: Sum, other: Sum, factor: int = 1) -> Sum:
    """Return one sum plus a multiple of another one."""
    result = dict(one)
    for term, count in other.items():
        value = result.get(term, 0) + factor * count
        if value or term == ONE:
            result[term] = value
        else:
            result.pop(term, None)
    return result


def times(sum: Sum, factor: int) -> Sum:
    """Return a multiple of a sum."""
    return add({ONE: 0}, sum, factor)


def instead(sum: Sum, term: int, value: Sum) -> Sum:
    """Return a sum with another one in place of a term."""
    if term not in sum:
        return sum
    rest = dict(sum)
    return add(rest, value, rest.pop(term))
