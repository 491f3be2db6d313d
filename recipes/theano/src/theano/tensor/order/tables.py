"""Integers that are computed from one length, as tables.

However long the chain of sums, comparisons and switches is, from some length on it is a line: the
table of it is exact, and has the shortest formula.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from theano import scalar
from theano.tensor import basic
from theano.tensor.order.integers import LENGTHS, RANGES, arguments, is_integer, scalar_op, shape

if TYPE_CHECKING:
    from theano.gof import Variable

# How long the row of a table may be, and of how many integers it may be computed.
LONGEST, MOST = 8, 300

# By op: the integer that it makes of others.
ARITHMETIC: dict[Any, Callable[..., int]] = {
    scalar.Add: lambda *each: sum(each),
    scalar.Sub: operator.sub,
    scalar.Neg: operator.neg,
    scalar.Mul: lambda *each: math.prod(each),
}
SAME: dict[Any, Callable[..., int]] = dict.fromkeys((scalar.Identity, scalar.Cast), operator.index)
LOGICAL: dict[Any, Callable[..., int]] = {scalar.AND: operator.and_, scalar.OR: operator.or_}
# These do something else from where on one of two is more than the other.
COMPARING: dict[Any, Callable[..., int]] = {
    scalar.Maximum: max,
    scalar.Minimum: min,
    scalar.LT: operator.lt,
    scalar.LE: operator.le,
    scalar.GT: operator.gt,
    scalar.GE: operator.ge,
    scalar.EQ: operator.eq,
    scalar.NEQ: operator.ne,
}


class Table(NamedTuple):
    """An integer for each length: of the shortest ones in a row, of others slope * length + offset.

    The last one in the row is not what that would be. The length is a shape, as `integers.shape`
    has it, or None where the integer is the same for all.
    """

    row: tuple[int, ...]
    slope: int
    offset: int
    length: Any = None

    def at(self, length: int) -> int:
        """Return the integer for a length."""
        return self.row[length] if length < len(self.row) else self.line(length)

    def line(self, length: int) -> int:
        """Return what the integer would be without the row."""
        return self.slope * length + self.offset


def choose(condition: int, one: int, other: int) -> int:
    """Return one of two integers, as a switch does."""
    return one if condition else other


def tabulate(
    function: Callable[..., int], tables: Sequence[Table], begin: int, length: Any
) -> Table:
    """Return the table of what a function, which is linear from a length on, makes of tables."""
    values = [int(function(*(each.at(n) for each in tables))) for n in range(begin + 2)]
    slope = values[-1] - values[-2]
    result = Table((), slope, values[-1] - slope * (begin + 1), length)
    while begin and values[begin - 1] == result.line(begin - 1):
        begin -= 1
    if not slope and not begin:
        length = None
    return result._replace(row=tuple(values[:begin]), length=length)


class Tables:
    """The tables of integer variables; of what may overflow, and of most others, there are none."""

    def __init__(self) -> None:
        self.known: dict[Variable, Table | None] = {}
        # By shape: the first variable that is it.
        self.lengths: dict[Any, Variable] = {}

    def of(self, x: Variable) -> Table | None:
        """Return the table of an integer, or None."""
        # Without recursion: there are long chains of slices.
        known, todo = self.known, [x]
        while todo:
            each = todo[-1]
            if each not in known:
                inputs = arguments(each)
                missing = [arg for arg in inputs if arg not in known]
                if missing and len(todo) < MOST:
                    todo.extend(missing)
                    continue
                known[each] = None if missing else self._made(each, inputs)
            todo.pop()
        return known[x]

    def _made(self, x: Variable, inputs: Sequence[Variable]) -> Table | None:
        if not inputs:
            return self._given(x)
        tables = [self.known[each] for each in inputs]
        found = [each for each in tables if each is not None]
        lengths = [each.length for each in found if each.length]
        if len(found) < len(tables) or any(each != lengths[0] for each in lengths):
            return None
        function = self._function(x, inputs, found)
        begin = max(len(each.row) for each in found)
        if function in COMPARING.values():
            one, other = found
            slope, offset = one.slope - other.slope, one.offset - other.offset
            begin = max(begin, -offset // slope + 1 if slope else 0)
        if function is None or begin > LONGEST:
            return None
        result = tabulate(function, found, begin, lengths[0] if lengths else None)
        ends = (*result.row, result.at(len(result.row)), result.at(LENGTHS[1]))
        low, high = RANGES[x.type.dtype]
        return result if low <= min(ends) and max(ends) <= high else None

    def _given(self, x: Variable) -> Table | None:
        """The table of a constant or a length."""
        if not is_integer(x):
            return None
        if isinstance(x, basic.Constant):
            return Table((), 0, int(x.data))
        length = x.owner and shape(x)
        if not length:
            return None
        self.lengths.setdefault(length, x)
        return Table((), 1, 0, length)

    @staticmethod
    def _function(
        x: Variable, inputs: Sequence[Variable], tables: Sequence[Table]
    ) -> Callable[..., int] | None:
        """What makes an integer of others, if that is linear but for the COMPARING."""
        kind = type(scalar_op(x) or scalar.identity)
        bits = [each.type.dtype == "bool" for each in inputs]
        if x.type.dtype not in ("int64", "bool"):
            return None
        if kind in ARITHMETIC:
            linear = kind is not scalar.Mul or sum(each.slope != 0 for each in tables) < 2
            return ARITHMETIC[kind] if linear and x.type.dtype == "int64" else None
        if kind in SAME:
            return SAME[kind] if x.type.dtype == "int64" or all(bits) else None
        if kind in LOGICAL:
            return LOGICAL[kind] if all(bits) else None
        if kind is scalar.Switch:
            return choose if bits[0] else None
        return COMPARING.get(kind) if len(inputs) == 2 else None

    def formula(self, table: Table) -> Variable | None:
        """Return an int64 that has a table, unless that takes more than two comparisons."""
        row, line = table.row, self._line(table)
        if not row:
            return line
        # The row can be of another line, of which there is the lesser or the greater.
        other = table._replace(slope=row[1] - row[0] if row[1:] else 0, offset=row[0])
        low, high = RANGES["int64"]
        overflows = not low <= other.line(LENGTHS[1]) <= high
        for op, extreme in () if overflows else ((basic.maximum, max), (basic.minimum, min)):
            # On lines, what holds for the next length holds for all after it.
            if (table.slope > other.slope) == (extreme is max) and all(
                table.at(n) == extreme(table.line(n), other.line(n)) for n in range(len(row) + 1)
            ):
                return op(line, self._line(other))
        ends = [n for n in range(1, len(row) + 1) if row[n - 1 : n] != row[n : n + 1]]
        if len(ends) > 2:
            return None
        for end in reversed(ends):
            n = self.lengths[table.length]
            line = basic.switch(basic.lt(n, np.int64(end)), np.int64(row[end - 1]), line)
        return line

    def _line(self, table: Table) -> Variable:
        """What a table would be without its row."""
        parts = []
        if table.slope:
            n = self.lengths[table.length]
            parts.append(n if table.slope == 1 else n * np.int64(table.slope))
        if table.offset or not parts:
            parts.append(basic.constant(np.int64(table.offset)))
        return basic.add(*parts) if len(parts) > 1 else parts[0]
