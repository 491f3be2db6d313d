"""Linear combinations of terms with integer factors."""

from __future__ import annotations

# {term: factor}. A term is a number that identifies it. ONE is the constant 1; each sum has it.
Sum = dict[int, int]
ONE = 0


def add(sum: Sum, other: Sum, factor: int = 1) -> Sum:
    """Return sum + factor * other."""
    result = dict(sum)
    for term, count in other.items():
        value = result.get(term, 0) + factor * count
        if value or term == ONE:
            result[term] = value
        else:
            result.pop(term, None)
    return result


def times(sum: Sum, factor: int) -> Sum:
    """Return factor * sum."""
    return add({ONE: 0}, sum, factor)


def substitute(sum: Sum, term: int, value: Sum) -> Sum:
    """Return a sum with a term replaced by another sum."""
    if term not in sum:
        return sum
    other_terms = dict(sum)
    return add(other_terms, value, other_terms.pop(term))
