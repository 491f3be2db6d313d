"""Integer variables as sums of what nothing is known of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import theano.tensor
from theano import scalar
from theano.compile.ops import Shape_i
from theano.tensor import basic
from theano.tensor.elemwise import DimShuffle, Elemwise
from theano.tensor.order.sums import ONE, Sum, add, times

if TYPE_CHECKING:
    from theano.gof import Variable

# By dtype: the least and the greatest integer. No two of these dtypes are compared by C as if the
# negative integer was not.
RANGES = {"bool": (0, 1)} | {
    dtype: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16")
}

# An array of x86-64 has no more elements along a dimension than there are addresses.
LENGTHS = (0, 2**48)

# Ops of which the output is the input.
SAME = (basic.ScalarFromTensor, basic.TensorFromScalar, DimShuffle)

COMPARISONS = (scalar.LT, scalar.LE, scalar.GT, scalar.GE)


def is_integer(x: Variable) -> bool:
    """Return whether a variable is one integer, of a type that is looked at."""
    return x.type.ndim == 0 and x.type.dtype in RANGES


def scalar_op(x: Variable) -> Any:
    """Return the scalar op that computes a variable without dimensions, or None."""
    return x.owner.op.scalar_op if x.owner and isinstance(x.owner.op, Elemwise) else None


def arguments(x: Variable) -> list[Variable]:
    """Return the integers of which an integer is computed by what is known here."""
    if (
        x.owner
        and (scalar_op(x) or isinstance(x.owner.op, SAME))
        and all(is_integer(each) for each in x.owner.inputs)
    ):
        inputs: list[Variable] = x.owner.inputs
        return inputs
    return []


def shape(x: Variable) -> tuple[Shape_i, Variable] | None:
    """Return which Shape_i of which variable another one, which an op computes, is, or None."""
    op, inputs = x.owner.op, x.owner.inputs
    if isinstance(op, Shape_i):
        return op, inputs[0]
    if (
        isinstance(op, theano.tensor.Subtensor)
        and inputs[0].owner
        and isinstance(inputs[0].owner.op, basic.Shape)
    ):
        (i,) = theano.tensor.get_idx_list(inputs, op.idx_list)
        i = basic.extract_constant(i, only_process_constants=True)
        (of,) = inputs[0].owner.inputs
        if not isinstance(i, basic.Variable):
            return Shape_i(int(i) + (of.type.ndim if i < 0 else 0)), of
    return None


class Integers:
    """The sums that integer variables are, and what is known of their terms.

    A variable is the sum of others only where that is in the range of its dtype whatever they are:
    what can overflow is a term of its own.
    """

    # How many variables lead to one that is looked at.
    reach = 50

    def __init__(self) -> None:
        self.sums: dict[Variable, Sum] = {}
        # By the items of a sum: the first variable that is it.
        self.variables: dict[frozenset[tuple[int, int]], Variable] = {}
        # By what it stands for: the term.
        self.terms: dict[Any, int] = {1: ONE}
        # By term: the least and the greatest that it can be, and its cases, pairs of the sums that
        # are not negative in that case, and of what the term is.
        self.bounds: dict[int, tuple[int, int]] = {ONE: (1, 1)}
        self.cases: dict[int, list[tuple[list[Sum], Sum]]] = {}

    def sum(self, x: Variable) -> Sum:
        """Return an integer variable as a sum."""
        # Without recursion: there are long chains of slices.
        todo = [] if x in self.sums else [x]
        while todo:
            each = todo[-1]
            if each not in self.sums:
                inputs = arguments(each)
                missing = [arg for arg in inputs if arg not in self.sums]
                if missing and len(todo) < self.reach:
                    todo.extend(missing)
                    continue
                sum = self.term(each, each)[0] if missing else self._sum(each, inputs)
                self.sums[each] = sum
                self.variables.setdefault(frozenset(sum.items()), each)
            todo.pop()
        return self.sums[x]

    def _sum(self, x: Variable, inputs: list[Variable]) -> Sum:
        if isinstance(x, basic.Constant):
            return {ONE: int(x.data)}
        op = scalar_op(x)
        if not inputs:
            return self.term(x, (x.owner and shape(x)) or x)[0]
        if op is None:
            return self.sum(inputs[0])
        result = self._computed(op, inputs)
        if result is not None and self.fits(result, x.type.dtype):
            return result
        return self._of_cases(x, op, inputs)

    def _computed(self, op: Any, inputs: Sequence[Variable]) -> Sum | None:
        """The sum that an op makes of integers, or None if that is none of theirs."""
        if isinstance(op, (scalar.Identity, scalar.Cast)):
            return self.sum(inputs[0])
        if isinstance(op, scalar.Add):
            result = {ONE: 0}
            for each in inputs:
                result = add(result, self.sum(each))
            return result
        if isinstance(op, scalar.Sub):
            return add(self.sum(inputs[0]), self.sum(inputs[1]), -1)
        if isinstance(op, scalar.Neg):
            return times(self.sum(inputs[0]), -1)
        if isinstance(op, scalar.Mul) and len(inputs) == 2:
            sums = [self.sum(each) for each in inputs]
            for one, other in (sums, sums[::-1]):
                if list(one) == [ONE]:
                    return times(other, one[ONE])
        return None

    def _of_cases(self, x: Variable, op: Any, inputs: Sequence[Variable]) -> Sum:
        """A term for what an op computes, with its cases if it is one of its inputs."""
        sums = [self.sum(each) for each in inputs]
        # Of equal integers, an op makes others in other dtypes.
        known = [
            (each.type.dtype, frozenset(sum.items()))
            for each, sum in zip(inputs, sums, strict=True)
        ]
        # An op can have several outputs.
        which = x.owner.outputs.index(x)
        result, term = self.term(x, (op, which, x.type.dtype, *known))
        if isinstance(op, scalar.Switch):
            self.cases[term] = [
                (self.facts(inputs[0], True), sums[1]),
                (self.facts(inputs[0], False), sums[2]),
            ]
        elif isinstance(op, (scalar.Maximum, scalar.Minimum)):
            facts = self.differences(*inputs)
            if isinstance(op, scalar.Minimum):
                facts.reverse()
            self.cases[term] = [([fact], sum) for fact, sum in zip(facts, sums, strict=True)]
        if term in self.cases:
            bounds = [self._between(sum, facts) for facts, sum in self.cases[term]]
            self.bounds[term] = (min(low for low, _ in bounds), max(high for _, high in bounds))
        return result

    def _between(self, sum: Sum, facts: Sequence[Sum]) -> tuple[int, int]:
        """The least and the greatest that a sum can be if facts are not negative."""
        without = [{ONE: 0}, *facts]
        return (
            max(self.least(add(sum, fact, -1)) for fact in without),
            min(-self.least(add(times(sum, -1), fact, -1)) for fact in without),
        )

    def least(self, sum: Sum) -> int:
        """Return what a sum is not less than, whatever its terms are."""
        bounds, result = self.bounds, 0
        for term, factor in sum.items():
            result += factor * bounds[term][factor < 0]
        return result

    def fits(self, sum: Sum, dtype: str = "int64") -> bool:
        """Return whether a sum is in the range of a dtype, whatever its terms are."""
        low, high = RANGES[dtype]
        return self.least(sum) >= low and -self.least(times(sum, -1)) <= high

    def term(self, x: Variable, what: Any) -> tuple[Sum, int]:
        """Return a variable as a sum of one term, and the term.

        Args:
            what: what it stands for; the same has the same term.
        """
        term = self.terms.setdefault(what, len(self.terms))
        length = isinstance(what, tuple) and isinstance(what[0], Shape_i)
        self.bounds.setdefault(term, LENGTHS if length else RANGES[x.type.dtype])
        return {ONE: 0, term: 1}, term

    def facts(self, condition: Variable, value: bool) -> list[Sum]:
        """Return sums that are not negative if a condition has that value."""
        op = scalar_op(condition)
        if op is None:
            return []
        inputs = condition.owner.inputs
        if isinstance(op, scalar.AND if value else scalar.OR):
            return [fact for each in inputs for fact in self.facts(each, value)]
        if not all(is_integer(each) for each in inputs):
            return []
        if isinstance(op, COMPARISONS):
            less, more = inputs
            strict = isinstance(op, (scalar.LT, scalar.GT))
            if isinstance(op, (scalar.GT, scalar.GE)) == value:
                less, more = more, less
            return [self.difference(more, less, int(strict == value))]
        if isinstance(op, scalar.EQ if value else scalar.NEQ):
            return self.differences(*inputs)
        return []

    def difference(self, more: Variable, less: Variable, more_than: int = 0) -> Sum:
        """Return the sum that is not negative if one is more than another by so much."""
        return add(add(self.sum(more), self.sum(less), -1), {ONE: -more_than})

    def differences(self, one: Variable, other: Variable) -> list[Sum]:
        """Return the sums that are not negative if one is not less than another, or not more."""
        return [self.difference(one, other), self.difference(other, one)]
