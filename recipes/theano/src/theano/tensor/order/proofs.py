"""What holds for integers, whatever the values of the graph's inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from theano.tensor.order.integers import Integers
from theano.tensor.order.sums import ONE, Sum, add, instead

if TYPE_CHECKING:
    from theano.gof import Variable

# Less than 0: whatever this follows from cannot be.
FALSE = {ONE: -1}


class Proofs(Integers):
    """Prove that sums are not negative.

    A sum of what is not negative, such as lengths, is not negative. Where a switch, a maximum or a
    minimum is in a sum, each of its cases is looked at, with what is known in that case. What is
    not proved can be true all the same.

    Facts are sums that are not negative.
    """

    # How many sums are looked at for an answer.
    budget = 100

    def __init__(self) -> None:
        super().__init__()
        # How many of them are left.
        self.left = self.budget

    def missing(self, sum: Sum) -> int | None:
        """Return a term for which a sum can be negative, or None."""
        self.left -= 1
        # As least does, in one pass: nothing is called more often.
        least, found, bounds = 0, None, self.bounds
        for term, factor in sum.items():
            low = factor * bounds[term][factor < 0]
            if low < 0 and found is None:
                found = term
            least += low
        return None if least >= 0 else found

    def follows(self, sum: Sum, facts: Sequence[Sum], n: int = 3) -> bool:
        """Return whether a sum is not negative because at most n of the facts are not."""
        term = self.missing(sum)
        if term is None:
            return True
        if n:
            for i, fact in enumerate(facts):
                if fact.get(term, 0) * sum[term] > 0 and self.follows(
                    add(sum, fact, -1), [*facts[:i], *facts[i + 1 :]], n - 1
                ):
                    return True
        return False

    def holds(self, sum: Sum, facts: Sequence[Sum] = ()) -> bool:
        """Return whether it is proved that a sum is not negative."""
        if self.left < 0:
            return False
        # Facts that cannot be are of a case that there is not.
        if self.follows(sum, facts) or (facts and self.follows(FALSE, facts)):
            return True
        term = self.last([sum, *facts])
        return term is not None and all(
            self.holds(case[0], case[1:]) for case in self.split(term, [sum, *facts])
        )

    def same(self, one: Variable, other: Variable, facts: Sequence[Sum] = ()) -> bool:
        """Return whether it is proved that two integers are equal."""
        return self.holds(self.difference(one, other), facts) and self.holds(
            self.difference(other, one), facts
        )

    def last(self, sums: Iterable[Sum]) -> int | None:
        """Return the last term of some sums that has cases, which are of terms before it."""
        return max((term for sum in sums for term in sum if term in self.cases), default=None)

    def split(self, term: int, sums: Sequence[Sum]) -> list[list[Sum]]:
        """Return what sums are in each case of a term, and after them its facts."""
        return [
            [*(instead(sum, term, value) for sum in sums), *facts]
            for facts, value in self.cases[term]
        ]

    def outcomes(self, sums: Sequence[Sum], facts: Sequence[Sum] = ()) -> list[list[Sum]]:
        """Return what sums can be, and after them the facts of that case.

        They are in the order of switches, maxima and minima in them.
        """
        n = len(sums)
        cases = [[*sums, *facts]]
        while self.left >= 0:
            term = self.last(sum for case in cases for sum in case[:n])
            if term is None:
                break
            cases = [
                case
                for each in cases
                for case in self.split(term, each)
                if not self.follows(FALSE, case[n:])
            ]
        return cases
