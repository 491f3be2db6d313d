"""Integer variables as linear sums of unknown terms, with bounds and cases of the terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import theano.tensor
from theano import scalar
from theano.compile.ops import Shape_i
from theano.tensor import basic
from theano.tensor.elemwise import DimShuffle, Elemwise
from theano.tensor.order.linear_sums import ONE, Sum, add, scale

if TYPE_CHECKING:
    from theano.gof import Variable

# Maps a supported dtype to its least and its greatest integer. uint32 and uint64 are not supported,
# because a comparison in C may convert a negative integer to these types.
RANGES = {"bool": (0, 1)} | {
    dtype: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16")
}

# The least and the greatest length of a dimension: x86-64 has 2**48 addresses.
LENGTHS = (0, 2**48)

# Ops that copy an integer.
SAME = (basic.ScalarFromTensor, basic.TensorFromScalar, DimShuffle)

COMPARISONS = (scalar.LT, scalar.LE, scalar.GT, scalar.GE)


def is_integer(x: Variable) -> bool:
    """Return whether a variable is a single integer of a supported dtype."""
    return x.type.ndim == 0 and x.type.dtype in RANGES


def get_scalar_op(x: Variable) -> Any:
    """Return the scalar op of the Elemwise that computes a variable, or None."""
    return x.owner.op.scalar_op if x.owner and isinstance(x.owner.op, Elemwise) else None


def get_arguments(x: Variable) -> list[Variable]:
    """Return the inputs of the node that computes a variable, if all of them are integers.

    Return [] if an input is not a supported integer, or if the op is neither elementwise nor in
    SAME.
    """
    if (
        x.owner
        and (get_scalar_op(x) or isinstance(x.owner.op, SAME))
        and all(is_integer(input) for input in x.owner.inputs)
    ):
        inputs: list[Variable] = x.owner.inputs
        return inputs
    return []


def find_length(x: Variable) -> tuple[Shape_i, Variable] | None:
    """Return (Shape_i op, tensor) if a variable is the length of a tensor, otherwise None.

    Args:
        x: a variable that a node computes, as shape(tensor)[i] or by Shape_i.
    """
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
        (tensor,) = inputs[0].owner.inputs
        if not isinstance(i, basic.Variable):
            return Shape_i(int(i) + (tensor.type.ndim if i < 0 else 0)), tensor
    return None


class Integers:
    """Integer variables as linear sums of terms (linear_sums.Sum).

    A sum replaces a variable only if it is in the range of the variable's dtype for all values of
    the terms. A variable that can overflow is a separate term.

    Attributes:
        reach: the length of the longest chain of variables that is followed. In a longer chain, the
            last followed variable is a term.
        sums: maps a variable to its sum.
        variables: maps the items of a sum to the first variable with this sum.
        terms: maps the meaning of a term (see `make_term`) to the term.
        bounds: maps a term to its least and its greatest value.
        cases: maps a term to its cases. A case is a pair: a list of sums, called facts, and a sum,
            called value. If no fact is negative, the term equals the value.
    """

    reach = 50

    def __init__(self) -> None:
        self.sums: dict[Variable, Sum] = {}
        self.variables: dict[frozenset[tuple[int, int]], Variable] = {}
        self.terms: dict[Any, int] = {1: ONE}
        self.bounds: dict[int, tuple[int, int]] = {ONE: (1, 1)}
        self.cases: dict[int, list[tuple[list[Sum], Sum]]] = {}

    def find_sum(self, x: Variable) -> Sum:
        """Return an integer variable as a sum."""
        # Do not recurse, because chains of slices can be long.
        todo = [] if x in self.sums else [x]
        while todo:
            variable = todo[-1]
            if variable not in self.sums:
                inputs = get_arguments(variable)
                missing = [arg for arg in inputs if arg not in self.sums]
                if missing and len(todo) < self.reach:
                    todo.extend(missing)
                    continue
                sum = (
                    self.make_term(variable, variable)[0]
                    if missing
                    else self._make_sum(variable, inputs)
                )
                self.sums[variable] = sum
                self.variables.setdefault(frozenset(sum.items()), variable)
            todo.pop()
        return self.sums[x]

    def _make_sum(self, x: Variable, inputs: list[Variable]) -> Sum:
        """Make the sum of a variable from the sums of its inputs."""
        if isinstance(x, basic.Constant):
            return {ONE: int(x.data)}
        op = get_scalar_op(x)
        if not inputs:
            return self.make_term(x, (x.owner and find_length(x)) or x)[0]
        if op is None:
            return self.find_sum(inputs[0])
        result = self._combine_linearly(op, inputs)
        if result is not None and self.fits(result, x.type.dtype):
            return result
        return self._make_term_of_cases(x, op, inputs)

    def _combine_linearly(self, op: Any, inputs: Sequence[Variable]) -> Sum | None:
        """Return the sum that a linear op computes, or None for other ops."""
        if isinstance(op, (scalar.Identity, scalar.Cast)):
            return self.find_sum(inputs[0])
        if isinstance(op, scalar.Add):
            result = {ONE: 0}
            for x in inputs:
                result = add(result, self.find_sum(x))
            return result
        if isinstance(op, scalar.Sub):
            return add(self.find_sum(inputs[0]), self.find_sum(inputs[1]), -1)
        if isinstance(op, scalar.Neg):
            return scale(self.find_sum(inputs[0]), -1)
        if isinstance(op, scalar.Mul) and len(inputs) == 2:
            sums = [self.find_sum(x) for x in inputs]
            for factor, multiplicand in (sums, sums[::-1]):
                # A sum without other terms is a constant.
                if list(factor) == [ONE]:
                    return scale(multiplicand, factor[ONE])
        return None

    def _make_term_of_cases(self, x: Variable, op: Any, inputs: Sequence[Variable]) -> Sum:
        """Return an op's output as a term; record the cases of a Switch, Maximum or Minimum."""
        sums = [self.find_sum(input) for input in inputs]
        # The term's meaning contains dtypes, because results of an op can depend on them.
        operands = [
            (input.type.dtype, frozenset(sum.items()))
            for input, sum in zip(inputs, sums, strict=True)
        ]
        output_number = x.owner.outputs.index(x)
        result, term = self.make_term(x, (op, output_number, x.type.dtype, *operands))
        if isinstance(op, scalar.Switch):
            self.cases[term] = [
                (self.find_facts(inputs[0], True), sums[1]),
                (self.find_facts(inputs[0], False), sums[2]),
            ]
        elif isinstance(op, (scalar.Maximum, scalar.Minimum)):
            facts = self.subtract_both_ways(*inputs)
            if isinstance(op, scalar.Minimum):
                facts.reverse()
            self.cases[term] = [([fact], sum) for fact, sum in zip(facts, sums, strict=True)]
        if term in self.cases:
            bounds = [self._find_bounds(sum, facts) for facts, sum in self.cases[term]]
            self.bounds[term] = (min(low for low, _ in bounds), max(high for _, high in bounds))
        return result

    def _find_bounds(self, sum: Sum, facts: Sequence[Sum]) -> tuple[int, int]:
        """Return a lower and an upper bound of a sum if facts are not negative.

        If a fact is not negative, the sum minus the fact is at most the sum. Therefore the least
        value of the difference is a lower bound of the sum.
        """
        subtrahends = [{ONE: 0}, *facts]
        return (
            max(self.find_lower_bound(add(sum, fact, -1)) for fact in subtrahends),
            min(-self.find_lower_bound(add(scale(sum, -1), fact, -1)) for fact in subtrahends),
        )

    def find_lower_bound(self, sum: Sum) -> int:
        """Return a lower bound of a sum for all values of its terms."""
        bounds, result = self.bounds, 0
        for term, factor in sum.items():
            result += factor * bounds[term][factor < 0]
        return result

    def fits(self, sum: Sum, dtype: str = "int64") -> bool:
        """Return whether a sum is in the range of a dtype for all values of its terms."""
        low, high = RANGES[dtype]
        return self.find_lower_bound(sum) >= low and -self.find_lower_bound(scale(sum, -1)) <= high

    def make_term(self, x: Variable, meaning: Any) -> tuple[Sum, int]:
        """Return a variable as a sum of one term, and the number of this term.

        Args:
            x: the variable.
            meaning: a hashable value. Variables with equal meanings have the same term.
        """
        term = self.terms.setdefault(meaning, len(self.terms))
        length = isinstance(meaning, tuple) and isinstance(meaning[0], Shape_i)
        self.bounds.setdefault(term, LENGTHS if length else RANGES[x.type.dtype])
        return {ONE: 0, term: 1}, term

    def find_facts(self, condition: Variable, value: bool) -> list[Sum]:
        """Return facts: sums that are not negative if a condition has the given value."""
        op = get_scalar_op(condition)
        if op is None:
            return []
        inputs = condition.owner.inputs
        if isinstance(op, scalar.AND if value else scalar.OR):
            return [fact for operand in inputs for fact in self.find_facts(operand, value)]
        if not all(is_integer(operand) for operand in inputs):
            return []
        if isinstance(op, COMPARISONS):
            less, more = inputs
            strict = isinstance(op, (scalar.LT, scalar.GT))
            if isinstance(op, (scalar.GT, scalar.GE)) == value:
                less, more = more, less
            return [self.subtract(more, less, int(strict == value))]
        if isinstance(op, scalar.EQ if value else scalar.NEQ):
            return self.subtract_both_ways(*inputs)
        return []

    def subtract(self, more: Variable, less: Variable, offset: int = 0) -> Sum:
        """Return the sum more - less - offset, which is not negative if more >= less + offset."""
        return add(add(self.find_sum(more), self.find_sum(less), -1), {ONE: -offset})

    def subtract_both_ways(self, x: Variable, y: Variable) -> list[Sum]:
        """Return x - y, not negative if x >= y, and y - x, not negative if x <= y."""
        return [self.subtract(x, y), self.subtract(y, x)]
