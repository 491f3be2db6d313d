"""Parse the known differences in known.toml, and match them with a program's difference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from fuzz.differences import Difference
from fuzz.program import Program


@dataclass(frozen=True)
class KnownDifference:
    """A row of known.toml.

    Args:
        kinds: the kinds of differences that the row matches.
        pattern: a regular expression that must match a part of the shrunk program's text.
        message: a regular expression that must match a part of the difference's text.
        finite: if false, the row matches only differences of elements that are nan or infinite.
        situations: the situations that the row matches (Difference.situation).
        stock: whether stock Theano has the same difference.
        reason: the cause of the difference, or the reason not to fix it.
    """

    kinds: tuple[str, ...]
    pattern: str
    message: str
    finite: bool
    situations: tuple[str, ...]
    stock: bool
    reason: str

    def matches(self, program: Program, difference: Difference, on_stock: bool | None) -> bool:
        """Return whether the row lists a program's difference.

        ``on_stock`` is whether stock Theano has the difference too. None means unknown: ignore the
        row's ``stock``.
        """
        return (
            difference.kind in self.kinds
            and difference.situation in self.situations
            and (self.finite or not difference.finite)
            and (on_stock is None or on_stock == self.stock)
            and re.search(self.message, str(difference)) is not None
            and re.search(
                self.pattern, f"{program.format_graph()}\n{program.format_function(program.mode)}"
            )
            is not None
        )


def parse(table: Mapping[str, Any]) -> tuple[KnownDifference, ...]:
    """Convert the parsed known.toml to rows.

    Raises:
        ValueError: the keys of a row are not the fields of KnownDifference, or a regular expression
            is invalid.
    """
    rows = []
    names = {field.name for field in fields(KnownDifference)}
    for row in table.get("known", []):
        if set(row) != names:
            raise ValueError(f"{row}: expected the keys {', '.join(sorted(names))}")
        for expression in (row["pattern"], row["message"]):
            try:
                re.compile(expression)
            except re.error as error:
                raise ValueError(f"{expression}: {error}") from error
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
        }
        rows.append(KnownDifference(**values))
    return tuple(rows)


def find_row(
    rows: Iterable[KnownDifference], program: Program, difference: Difference, on_stock: bool | None
) -> KnownDifference | None:
    """Return the first row that matches a program's difference, or None."""
    return next((row for row in rows if row.matches(program, difference, on_stock)), None)
