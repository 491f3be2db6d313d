"""Proofs that linear sums are not negative, for all values of the graph's inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from theano.tensor.order.integers import Integers
from theano.tensor.order.linear_sums import ONE, Sum, add, substitute

if TYPE_CHECKING:
    from theano.gof import Variable

# The sum -1, which is always negative. If facts prove that it is not negative, they contradict each
# other.
FALSE = {ONE: -1}


class Proofs(Integers):
    """Prove that sums are not negative.

    A sum of non-negative terms, such as lengths, is not negative. If a sum contains a switch, a
    maximum or a minimum, each of its cases is proved separately. Facts are sums that are known to
    be not negative: the facts of the case, and facts that the caller provides. A statement can be
    true even if the proof fails.

    Attributes:
        budget: the largest number of sums that are examined for one question.
        remaining: the number of sums that may still be examined.
    """

    budget = 100

    def __init__(self) -> None:
        super().__init__()
        self.remaining = self.budget

    def find_negative_term(self, sum: Sum) -> int | None:
        """Return None if bounds prove that a sum is not negative, else a possibly negative term."""
        self.remaining -= 1
        # Compute the lower bound here instead of calling `find_lower_bound`: this method is called
        # most often, and needs only one pass.
        least, negative, bounds = 0, None, self.bounds
        for term, factor in sum.items():
            low = factor * bounds[term][factor < 0]
            if low < 0 and negative is None:
                negative = term
            least += low
        return None if least >= 0 else negative

    def follows(self, sum: Sum, facts: Sequence[Sum], n: int = 3) -> bool:
        """Return whether bounds prove that a sum, minus at most n facts, is not negative.

        If so, the sum is not negative if the facts are not negative.
        """
        term = self.find_negative_term(sum)
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
        """Return whether a proof is found that a sum is not negative if no fact is negative."""
        if self.remaining < 0:
            return False
        # If the facts contradict each other, the case cannot occur, so any statement holds in it.
        if self.follows(sum, facts) or (facts and self.follows(FALSE, facts)):
            return True
        term = self.find_newest_term([sum, *facts])
        return term is not None and all(
            self.holds(case[0], case[1:]) for case in self.split(term, [sum, *facts])
        )

    def are_equal(self, x: Variable, y: Variable, facts: Sequence[Sum] = ()) -> bool:
        """Return whether a proof is found that two integers are equal if no fact is negative."""
        return self.holds(self.subtract(x, y), facts) and self.holds(self.subtract(y, x), facts)

    def find_newest_term(self, sums: Iterable[Sum]) -> int | None:
        """Return the newest term that has cases and occurs in one of the sums, or None.

        The cases of a term contain only older terms.
        """
        return max((term for sum in sums for term in sum if term in self.cases), default=None)

    def split(self, term: int, sums: Sequence[Sum]) -> list[list[Sum]]:
        """Replace a term in sums by the value of each of its cases.

        Returns:
            For each case, the new sums, followed by the facts of the case.
        """
        return [
            [*(substitute(sum, term, value) for sum in sums), *facts]
            for facts, value in self.cases[term]
        ]

    def split_all(self, sums: Sequence[Sum], facts: Sequence[Sum] = ()) -> list[list[Sum]]:
        """Replace all terms that have cases by the values of their cases; omit impossible cases.

        Returns:
            For each case, the new sums, followed by the facts of the case. The order of the cases
            follows the switches, maxima and minima in the sums.
        """
        n = len(sums)
        cases = [[*sums, *facts]]
        while self.remaining >= 0:
            term = self.find_newest_term(sum for case in cases for sum in case[:n])
            if term is None:
                break
            cases = [
                case
                for outer_case in cases
                for case in self.split(term, outer_case)
                if not self.follows(FALSE, case[n:])
            ]
        return cases
