"""Linear combinations of terms with integer factors."""

from __future__ import annotations

# Maps terms to factors. A term is the number of an unknown integer, such as a length. The term ONE
# stands for the constant 1; each sum has a factor for it. {ONE: 3, 7: 2} is 3 + 2 * (term 7).
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


def scale(sum: Sum, factor: int) -> Sum:
    """Return factor * sum."""
    return add({ONE: 0}, sum, factor)


def substitute(sum: Sum, term: int, value: Sum) -> Sum:
    """Return a sum in which the sum `value` replaces a term."""
    if term not in sum:
        return sum
    other_terms = dict(sum)
    return add(other_terms, value, other_terms.pop(term))
