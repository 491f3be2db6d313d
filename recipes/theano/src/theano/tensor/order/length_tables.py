"""Tables of integers that depend on one length only.

Sums, comparisons and switches of one length are linear functions of the length, if the length is
not below a certain minimum. A table of the integers for all shorter lengths, with the slope and
offset of the line, describes such an integer exactly. make_formula finds the shortest formula of a
table.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from theano import scalar
from theano.tensor import basic
from theano.tensor.order.integers import (
    LENGTHS,
    RANGES,
    find_length,
    get_arguments,
    get_scalar_op,
    is_integer,
)

if TYPE_CHECKING:
    from theano.gof import Variable

# The largest number of lengths in a table.
MAX_LENGTHS = 8
# The length of the longest chain of variables that is followed.
MAX_CHAIN = 300

# The following dictionaries map a class of scalar op to the function that computes it.
ARITHMETIC: dict[Any, Callable[..., int]] = {
    scalar.Add: lambda *terms: sum(terms),
    scalar.Sub: operator.sub,
    scalar.Neg: operator.neg,
    scalar.Mul: lambda *factors: math.prod(factors),
}
SAME: dict[Any, Callable[..., int]] = dict.fromkeys((scalar.Identity, scalar.Cast), operator.index)
LOGICAL: dict[Any, Callable[..., int]] = {scalar.AND: operator.and_, scalar.OR: operator.or_}
# The results of these functions may be linear only for lengths beyond the crossing of the lines of
# the two operands.
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


class LengthTable(NamedTuple):
    """An integer as a function of a length.

    Attributes:
        row: the integers for the lengths 0, 1, ...; the last of them is not on the line.
        slope: the slope of the line. The integer for a longer length is slope * length + offset.
        offset: the offset of the line.
        length: the length, as integers.find_length returns it, or None if the integer is constant.
    """

    row: tuple[int, ...]
    slope: int
    offset: int
    length: Any = None

    def compute_value(self, length: int) -> int:
        """Return the integer for a length."""
        return self.row[length] if length < len(self.row) else self.compute_line(length)

    def compute_line(self, length: int) -> int:
        """Return the value of the line for a length."""
        return self.slope * length + self.offset


def choose(condition: int, if_true: int, if_false: int) -> int:
    """Compute a switch of integers."""
    return if_true if condition else if_false


def tabulate(
    function: Callable[..., int], tables: Sequence[LengthTable], begin: int, length: Any
) -> LengthTable:
    """Return the table of a function of integers that have tables.

    Args:
        function: the function of the tables' integers.
        tables: the tables of the arguments.
        begin: a length. The result is linear for this length and all longer lengths.
        length: the length on which the arguments depend, or None.
    """
    values = [
        int(function(*(table.compute_value(n) for table in tables))) for n in range(begin + 2)
    ]
    slope = values[-1] - values[-2]
    result = LengthTable((), slope, values[-1] - slope * (begin + 1), length)
    while begin and values[begin - 1] == result.compute_line(begin - 1):
        begin -= 1
    if not slope and not begin:
        length = None
    return result._replace(row=tuple(values[:begin]), length=length)


class LengthTables:
    """The tables of integer variables.

    A variable has no table if it may overflow or depends on several lengths.

    Attributes:
        tables: maps a variable to its table, or to None.
        lengths: maps a length, as integers.find_length returns it, to the first variable with this
            length.
    """

    def __init__(self) -> None:
        self.tables: dict[Variable, LengthTable | None] = {}
        self.lengths: dict[Any, Variable] = {}

    def find_table(self, x: Variable) -> LengthTable | None:
        """Return the table of an integer, or None."""
        # Do not recurse, because chains of slices can be long.
        tables, todo = self.tables, [x]
        while todo:
            variable = todo[-1]
            if variable not in tables:
                inputs = get_arguments(variable)
                missing = [arg for arg in inputs if arg not in tables]
                if missing and len(todo) < MAX_CHAIN:
                    todo.extend(missing)
                    continue
                tables[variable] = None if missing else self._make_table(variable, inputs)
            todo.pop()
        return tables[x]

    def _make_table(self, x: Variable, inputs: Sequence[Variable]) -> LengthTable | None:
        """Return the table of an integer, from the tables of the inputs of its node."""
        if not inputs:
            return self._make_leaf(x)
        tables = [table for input in inputs if (table := self.tables[input]) is not None]
        lengths = [table.length for table in tables if table.length]
        if len(tables) < len(inputs) or any(length != lengths[0] for length in lengths):
            return None
        function = self._find_function(x, inputs, tables)
        begin = max(len(table.row) for table in tables)
        if function in COMPARING.values():
            lhs, rhs = tables
            # The lines of the operands cross where slope * length + offset is 0.
            slope, offset = lhs.slope - rhs.slope, lhs.offset - rhs.offset
            begin = max(begin, -offset // slope + 1 if slope else 0)
        if function is None or begin > MAX_LENGTHS:
            return None
        result = tabulate(function, tables, begin, lengths[0] if lengths else None)
        ends = (
            *result.row,
            result.compute_value(len(result.row)),
            result.compute_value(LENGTHS[1]),
        )
        low, high = RANGES[x.type.dtype]
        return result if low <= min(ends) and max(ends) <= high else None

    def _make_leaf(self, x: Variable) -> LengthTable | None:
        """Return the table of a constant or a length; None for other variables."""
        if not is_integer(x):
            return None
        if isinstance(x, basic.Constant):
            return LengthTable((), 0, int(x.data))
        length = x.owner and find_length(x)
        if not length:
            return None
        self.lengths.setdefault(length, x)
        return LengthTable((), 1, 0, length)

    @staticmethod
    def _find_function(
        x: Variable, inputs: Sequence[Variable], tables: Sequence[LengthTable]
    ) -> Callable[..., int] | None:
        """Return the function of integers that computes x, or None if x can have no table."""
        kind = type(get_scalar_op(x) or scalar.identity)
        are_bools = [input.type.dtype == "bool" for input in inputs]
        if x.type.dtype not in ("int64", "bool"):
            return None
        if kind in ARITHMETIC:
            linear = kind is not scalar.Mul or sum(table.slope != 0 for table in tables) < 2
            return ARITHMETIC[kind] if linear and x.type.dtype == "int64" else None
        if kind in SAME:
            return SAME[kind] if x.type.dtype == "int64" or all(are_bools) else None
        if kind in LOGICAL:
            return LOGICAL[kind] if all(are_bools) else None
        if kind is scalar.Switch:
            return choose if are_bools[0] else None
        return COMPARING.get(kind) if len(inputs) == 2 else None

    def make_formula(self, table: LengthTable) -> Variable | None:
        """Return an int64 formula of a table; None if it needs more than two comparisons."""
        row, line = table.row, self._make_line(table)
        if not row:
            return line
        # Try the maximum or minimum of the table's line and of the line through the first two
        # integers of the row.
        row_line = table._replace(slope=row[1] - row[0] if row[1:] else 0, offset=row[0])
        low, high = RANGES["int64"]
        overflows = not low <= row_line.compute_line(LENGTHS[1]) <= high
        for op, extreme in () if overflows else ((basic.maximum, max), (basic.minimum, min)):
            # The lengths up to len(row) are tested. For longer lengths, the slopes decide which
            # line is the maximum.
            if (table.slope > row_line.slope) == (extreme is max) and all(
                table.compute_value(n) == extreme(table.compute_line(n), row_line.compute_line(n))
                for n in range(len(row) + 1)
            ):
                return op(line, self._make_line(row_line))
        # Otherwise, return nested switches: one for each run of equal integers in the row.
        ends = [n for n in range(1, len(row) + 1) if row[n - 1 : n] != row[n : n + 1]]
        if len(ends) > 2:
            return None
        for end in reversed(ends):
            n = self.lengths[table.length]
            line = basic.switch(basic.lt(n, np.int64(end)), np.int64(row[end - 1]), line)
        return line

    def _make_line(self, table: LengthTable) -> Variable:
        """Return a variable that computes the line of a table."""
        parts = []
        if table.slope:
            n = self.lengths[table.length]
            parts.append(n if table.slope == 1 else n * np.int64(table.slope))
        if table.offset or not parts:
            parts.append(basic.constant(np.int64(table.offset)))
        return basic.add(*parts) if len(parts) > 1 else parts[0]
