"""What a graph of integers can be without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from theano import scalar
from theano.gof import utils
from theano.tensor import basic
from theano.tensor.order.integers import COMPARISONS, is_integer, scalar_op
from theano.tensor.order.proofs import FALSE, Proofs
from theano.tensor.order.sums import ONE, Sum, add, times
from theano.tensor.order.tables import Tables

if TYPE_CHECKING:
    from theano.gof import Variable


class Order(Proofs):
    """Replace integers by what they are known to be, whatever the values of the graph's inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = Tables()

    def known(self, x: Variable) -> Variable | None:
        """Return the variable that an integer is known to be, or None.

        Args:
            x: the output of a comparison, a maximum, a minimum or a switch; of others, nothing is
                known.
        """
        op = scalar_op(x)
        if (
            op is None
            or op.nin != (3 if isinstance(op, scalar.Switch) else 2)
            or not all(is_integer(each) for each in [x, *x.owner.inputs[-2:]])
        ):
            return None
        inputs = x.owner.inputs[-2:]
        if self.tables.of(x):
            return self._tabled(x, inputs)
        self.left = self.budget
        if isinstance(op, scalar.Switch):
            return self._chosen(x.owner.inputs[0], *inputs)
        if isinstance(op, (scalar.Maximum, scalar.Minimum)):
            return self._extreme(isinstance(op, scalar.Maximum), inputs)
        value = self._compared(x, op, *inputs)
        return None if value is None else basic.constant(np.bool_(value))

    def _tabled(self, x: Variable, inputs: Sequence[Variable]) -> Any:
        """The integer, or the one of some, that has the table of x: there is no more to know."""
        table = self.tables.of(x)
        if table and not table.length:
            return basic.constant(np.dtype(x.type.dtype).type(table.offset))
        return next((each for each in inputs if self.tables.of(each) == table), None)

    def _chosen(self, condition: Variable, if_true: Variable, if_false: Variable) -> Any:
        """The one of two that a switch is."""
        facts = [self.facts(condition, value) for value in (True, False)]
        for here, other in zip(facts, (if_false, if_true), strict=True):
            # The condition is not met, or if so, there is no difference.
            if self.holds(FALSE, here) or self.same(if_true, if_false, here):
                return other
        return None

    def _extreme(self, greater: bool, inputs: Sequence[Variable]) -> Any:
        """The one of two that a maximum, or else a minimum, is."""
        for i in range(2):
            if self.holds(self.difference(inputs[i], inputs[1 - i])):
                return inputs[i if greater else 1 - i]
        return None

    def _compared(self, x: Variable, op: Any, one: Variable, other: Variable) -> bool | None:
        """The outcome of a comparison of two."""
        if isinstance(op, (scalar.EQ, scalar.NEQ)):
            if self.same(one, other):
                return isinstance(op, scalar.EQ)
            if self.holds(self.difference(one, other, 1)) or self.holds(
                self.difference(other, one, 1)
            ):
                return isinstance(op, scalar.NEQ)
        elif isinstance(op, COMPARISONS):
            for value in (True, False):
                facts = self.facts(x, value)
                if len(facts) == 1 and self.holds(facts[0]):
                    return value
        return None

    def switch(self, condition: Variable, if_true: Variable, if_false: Variable) -> Variable:
        """Return the simplest variable that is known to be that switch of integers."""
        result = basic.switch(condition, if_true, if_false)
        known = self.known(result)
        return result if known is None else known

    def simplest(self, x: Any) -> Variable:
        """Return the sum, or the lesser or the greater of two, that an int64 is known to be.

        Args:
            x: what can be a variable; it is returned as one if no more is known of it, or its type
                is another one.
        """
        x = basic.as_tensor_variable(x)
        if not is_integer(x) or x.type.dtype != "int64":
            return x
        if found := self.tables.of(x):
            return self.tables.formula(found) or x
        self.left = self.budget
        cases = self.outcomes([self.sum(x)])
        sums = utils.uniq([case[0] for case in cases])
        if not all(self.fits(sum) for sum in sums):
            return x
        if len(sums) == 1:
            return self.variable(sums[0])
        if len(sums) == 2:
            for op, sign in (basic.maximum, 1), (basic.minimum, -1):
                more = add(times(sums[0], sign), sums[1], -sign)
                if all(
                    self.holds(more if case[0] == sums[0] else times(more, -1), case[1:])
                    for case in cases
                ):
                    return op(*[self.variable(each) for each in sums])
        return x

    def slice(self, start: Any, stop: Any) -> tuple[Variable, Variable]:
        """Return a start and a stop, not negative ones, that give the same elements.

        They are the given ones, as variables, unless those are known to be sums wherever there is
        an element.
        """
        self.left = self.budget
        start, stop = (basic.as_tensor_variable(end) for end in (start, stop))
        room = self.difference(stop, start, 1)
        cases = self.outcomes([self.sum(start), self.sum(stop), room], [room])
        ends = utils.uniq([case[:2] for case in cases])
        if len(ends) == 1 and all(self.fits(sum) for sum in ends[0]):
            first, last = (self._natural(sum) for sum in ends[0])
            if self.holds(self.difference(first, last), [self.difference(start, stop)]):
                return first, last
        return start, stop

    def _natural(self, sum: Sum) -> Variable:
        """A sum, or 0 if it is negative."""
        x = self.variable(sum)
        return x if self.holds(sum) else basic.maximum(x, np.int64(0))

    def variable(self, sum: Sum) -> Variable:
        """Return an int64 that is a sum."""
        if list(sum) == [ONE]:
            return basic.constant(np.int64(sum[ONE]))
        x = self.variables.get(frozenset(sum.items()))
        if x is None:
            parts = [
                self.variable({ONE: 0, term: 1})
                if factor == 1
                else self.variable({ONE: 0, term: 1}) * np.int64(factor)
                for term, factor in sum.items()
                if term != ONE
            ]
            if sum[ONE]:
                parts.append(self.variable({ONE: sum[ONE]}))
            x = basic.add(*parts) if len(parts) > 1 else parts[0]
        return basic.cast(x, "int64")
