"""Simplification of integer variables, proved for all shapes of the graph's inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from theano import scalar
from theano.gof import utils
from theano.tensor import basic
from theano.tensor.order.formulas import reuse_formulas
from theano.tensor.order.integers import COMPARISONS, get_scalar_op, is_integer
from theano.tensor.order.length_tables import LengthTables
from theano.tensor.order.linear_sums import ONE, Sum, add, scale
from theano.tensor.order.proofs import FALSE, Proofs

if TYPE_CHECKING:
    from theano.gof import Variable


class Order(Proofs):
    """Find simpler variables that always equal given integer variables.

    Attributes:
        tables: the tables of integers that depend on one length only.
    """

    def __init__(self) -> None:
        super().__init__()
        self.tables = LengthTables()

    def find_equal(self, x: Variable) -> Variable | None:
        """Return a constant or an operand that provably always equals an integer, or None.

        Args:
            x: a variable. The result is None unless a comparison, a maximum, a minimum or a switch
                computes it.
        """
        op = get_scalar_op(x)
        if (
            op is None
            or not is_integer(x)
            or op.nin != (3 if isinstance(op, scalar.Switch) else 2)
            or not all(map(is_integer, x.owner.inputs[-2:]))
        ):
            return None
        inputs = x.owner.inputs[-2:]
        if self.tables.find_table(x):
            return self._find_by_table(x, inputs)
        self.remaining = self.budget
        if isinstance(op, scalar.Switch):
            return self._resolve_switch(x.owner.inputs[0], *inputs)
        if isinstance(op, (scalar.Maximum, scalar.Minimum)):
            return self._resolve_extreme(isinstance(op, scalar.Maximum), inputs)
        value = self._resolve_comparison(x, op, *inputs)
        return None if value is None else basic.constant(np.bool_(value))

    def _find_by_table(self, x: Variable, inputs: Sequence[Variable]) -> Any:
        """Return a constant or an input whose LengthTable equals the table of x, or None."""
        table = self.tables.find_table(x)
        if table and not table.length:
            return basic.constant(np.dtype(x.type.dtype).type(table.offset))
        return next((input for input in inputs if self.tables.find_table(input) == table), None)

    def _resolve_switch(self, condition: Variable, if_true: Variable, if_false: Variable) -> Any:
        """Return the branch that a switch always equals, or None."""
        facts = [self.find_facts(condition, value) for value in (True, False)]
        for case_facts, other_branch in zip(facts, (if_false, if_true), strict=True):
            # The case cannot occur, or both branches are equal in this case.
            if self.holds(FALSE, case_facts) or self.are_equal(if_true, if_false, case_facts):
                return other_branch
        return None

    def _resolve_extreme(self, greater: bool, inputs: Sequence[Variable]) -> Any:
        """Return the input that a maximum or a minimum always equals, or None.

        Args:
            greater: True for a maximum, False for a minimum.
            inputs: the two inputs.
        """
        for i in range(2):
            if self.holds(self.subtract(inputs[i], inputs[1 - i])):
                return inputs[i if greater else 1 - i]
        return None

    def _resolve_comparison(
        self, x: Variable, op: Any, lhs: Variable, rhs: Variable
    ) -> bool | None:
        """Return the outcome of a comparison if it is always the same, otherwise None."""
        if isinstance(op, (scalar.EQ, scalar.NEQ)):
            if self.are_equal(lhs, rhs):
                return isinstance(op, scalar.EQ)
            if self.holds(self.subtract(lhs, rhs, 1)) or self.holds(self.subtract(rhs, lhs, 1)):
                return isinstance(op, scalar.NEQ)
        elif isinstance(op, COMPARISONS):
            for value in (True, False):
                facts = self.find_facts(x, value)
                if len(facts) == 1 and self.holds(facts[0]):
                    return value
        return None

    def make_switch(self, condition: Variable, if_true: Variable, if_false: Variable) -> Variable:
        """Return a switch of integers, or the branch or constant that it always equals."""
        result = basic.switch(condition, if_true, if_false)
        equal = self.find_equal(result)
        return result if equal is None else equal

    def simplify(self, x: Any) -> Variable:
        """Return the simplest formula of an int64: a sum, or a maximum or minimum of two sums.

        Args:
            x: an argument of as_tensor_variable. If its type is not int64, or if no formula is
                simpler, the result is as_tensor_variable(x).
        """
        x = basic.as_tensor_variable(x)
        if not is_integer(x) or x.type.dtype != "int64":
            return x
        if table := self.tables.find_table(x):
            return self.tables.make_formula(table) or x
        self.remaining = self.budget
        cases = self.split_all([self.find_sum(x)])
        sums = utils.uniq([case[0] for case in cases])
        if not all(self.fits(sum) for sum in sums):
            return x
        if len(sums) == 1:
            return self.make_variable(sums[0])
        if len(sums) == 2:
            for op, sign in (basic.maximum, 1), (basic.minimum, -1):
                # For a maximum, the difference is not negative in the cases of the first sum, and
                # not positive in the cases of the second sum. For a minimum, reverse the signs.
                difference = add(scale(sums[0], sign), sums[1], -sign)
                if all(
                    self.holds(
                        difference if case[0] == sums[0] else scale(difference, -1), case[1:]
                    )
                    for case in cases
                ):
                    return op(*[self.make_variable(sum) for sum in sums])
        return x

    def simplify_slice(self, start: Any, stop: Any) -> tuple[Variable, Variable]:
        """Return simpler ends of a slice; the slice with these ends has the same elements.

        If the ends equal two sums whenever the slice has an element, return max(sum, 0) for both
        sums. Otherwise return the ends unchanged, as variables.

        Args:
            start: the start of the slice, which is not negative.
            stop: the end of the slice, which is not negative.
        """
        self.remaining = self.budget
        start, stop = (basic.as_tensor_variable(end) for end in (start, stop))
        room = self.subtract(stop, start, 1)
        cases = self.split_all([self.find_sum(start), self.find_sum(stop), room], [room])
        ends = utils.uniq([case[:2] for case in cases])
        if len(ends) == 1 and all(self.fits(sum) for sum in ends[0]):
            first, last = (self._clip_at_zero(sum) for sum in ends[0])
            if self.holds(self.subtract(first, last), [self.subtract(start, stop)]):
                return first, last
        return start, stop

    def _clip_at_zero(self, sum: Sum) -> Variable:
        """Return max(sum, 0), without the maximum if the sum cannot be negative."""
        x = self.make_variable(sum)
        return x if self.holds(sum) else basic.maximum(x, np.int64(0))

    def make_variable(self, sum: Sum) -> Variable:
        """Return an int64 variable that computes a sum; reuse an existing variable if possible."""
        if list(sum) == [ONE]:
            return basic.constant(np.int64(sum[ONE]))
        x = self.variables.get(frozenset(sum.items()))
        if x is None:
            parts = [
                self.make_variable({ONE: 0, term: 1})
                if factor == 1
                else self.make_variable({ONE: 0, term: 1}) * np.int64(factor)
                for term, factor in sum.items()
                if term != ONE
            ]
            if sum[ONE]:
                parts.append(self.make_variable({ONE: sum[ONE]}))
            x = basic.add(*parts) if len(parts) > 1 else parts[0]
        return basic.cast(x, "int64")


@reuse_formulas
def make_switch(condition: Any, if_true: Any, if_false: Any) -> Variable:
    """Return a switch of integers, or the branch or constant that it always equals."""
    return Order().make_switch(condition, if_true, if_false)


@reuse_formulas
def simplify(x: Any) -> Variable:
    """Return the simplest formula of an int64; see `Order.simplify`."""
    return Order().simplify(x)
