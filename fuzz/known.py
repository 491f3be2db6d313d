"""The differences that are known, read from known.toml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from fuzz.comparing import Difference
from fuzz.program import Program


@dataclass(frozen=True)
class Known:
    """A difference that is known.

    Args:
        kinds: of the difference.
        pattern: what is found in the text of the smallest program.
        told: what is found in the difference as it is told.
        finite: whether it is of finite elements too, or only where one of them is not.
        situations: in which it happens.
        stock: whether stock Theano does the same.
        reason: why it stays.
    """

    kinds: tuple[str, ...]
    pattern: str
    told: str
    finite: bool
    situations: tuple[str, ...]
    stock: bool
    reason: str

    def matches(self, program: Program, difference: Difference, alike: bool | None) -> bool:
        """Whether it is this one; ``alike`` says what stock Theano did, None that it is unknown."""
        return (
            difference.kind in self.kinds
            and difference.situation in self.situations
            and (self.finite or not difference.finite)
            and (alike is None or alike == self.stock)
            and re.search(self.told, str(difference)) is not None
            and re.search(self.pattern, f"{program.graph()}\n{program.function(program.mode)}")
            is not None
        )


def parse(table: Mapping[str, Any]) -> tuple[Known, ...]:
    """The rows of the table.

    Raises:
        ValueError: a row has other keys, or its pattern is none.
    """
    found = []
    names = {field.name for field in fields(Known)}
    for row in table.get("known", []):
        if set(row) != names:
            raise ValueError(f"{row}: expected the keys {', '.join(sorted(names))}")
        for expression in (row["pattern"], row["told"]):
            try:
                re.compile(expression)
            except re.error as error:
                raise ValueError(f"{expression}: {error}") from error
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
        }
        found.append(Known(**values))
    return tuple(found)


def first(
    known: Iterable[Known], program: Program, difference: Difference, alike: bool | None
) -> Known | None:
    """The first row that matches, if one does."""
    return next((row for row in known if row.matches(program, difference, alike)), None)
