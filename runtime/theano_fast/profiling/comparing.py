"""Profiles of the same program under other stacks or versions, class by class."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from theano_fast import profiles

# What profiles tell besides tables, in seconds, as a reader looks for it.
NUMBERS = {
    "calls": "calls",
    "thunks": "in thunks",
    "scan_vm": "in the VM",
    "scan_overhead": "overhead",
    "compile": "compile",
    "optimizer": "optimizer",
    "linker": "linker",
    "grad": "theano.grad",
}
OTHERS = "(others)"


class ComparisonError(ValueError):
    """Profiles have nothing to be compared."""


@dataclass(frozen=True)
class Line:
    """One quantity in all files, in seconds; None where a profile does not tell it.

    kinds has the types, C or Py, of a class.
    """

    name: str
    seconds: tuple[float | None, ...]
    kinds: tuple[str, ...] = ()

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """The seconds in those of the first file."""
        first = self.seconds[0]
        return tuple(each / first if first and each is not None else None for each in self.seconds)


@dataclass(frozen=True)
class Comparison:
    """One function or scan in all files: how often it was called, its numbers, its classes."""

    name: str
    calls: tuple[int, ...]
    numbers: tuple[Line, ...]
    classes: tuple[Line, ...]


def compare(read: Sequence[Sequence[profiles.Profile]]) -> tuple[Comparison, ...]:
    """Compare the profiles of several files, those of the first with their likes in the others.

    Raises:
        ComparisonError: there are none in all files.
    """
    compared = []
    for position, first in enumerate(read[0]):
        likes = [first, *(_like(first, position, others, len(read[0])) for others in read[1:])]
        found = [each for each in likes if each is not None]
        if len(found) == len(likes):
            compared.append(_compare(found))
    if not compared:
        names = "; ".join(", ".join(each.name for each in file) for file in read)
        raise ComparisonError(f"no function or scan is in all files: {names}")
    return tuple(compared)


def _like(
    first: profiles.Profile, position: int, others: Sequence[profiles.Profile], count: int
) -> profiles.Profile | None:
    """Return the profile of the same name, or of the same place in a file with as many."""
    kin = [each for each in others if each.is_scan == first.is_scan]
    for each in kin:
        if each.name == first.name:
            return each
    if len(others) == count and others[position].is_scan == first.is_scan:
        return others[position]
    return None


def _compare(likes: Sequence[profiles.Profile]) -> Comparison:
    numbers = []
    for key, told in NUMBERS.items():
        values = tuple(each.seconds if key == "calls" else each.numbers.get(key) for each in likes)
        if any(value is not None for value in values):
            numbers.append(Line(told, values))
    tables = [{row.name: row for row in each.classes} for each in likes]
    names = list(dict.fromkeys(name for table in tables for name in table))
    classes = [
        Line(
            name.rpartition(".")[2],
            tuple(table[name].seconds if name in table else None for table in tables),
            tuple(table[name].kind if name in table else "" for table in tables),
        )
        for name in names
    ]
    classes.sort(key=lambda line: max(each or 0.0 for each in line.seconds), reverse=True)
    left = tuple(
        each.tables["Class"].left_seconds if "Class" in each.tables else None for each in likes
    )
    return Comparison(
        likes[0].name,
        tuple(each.calls for each in likes),
        tuple(numbers),
        (*classes, Line(OTHERS, left)),
    )


def labels(files: Sequence[Path]) -> tuple[str, ...]:
    """Return what tells the files' names apart: without what they begin and end with alike."""
    words = [path.name.split(".") for path in files]
    parts = [[piece for word in name for piece in word.split("-")] for name in words]
    same = set(parts[0]).intersection(*parts[1:])
    told = ["-".join(piece for piece in name if piece not in same) for name in parts]
    return tuple(name or path.stem for name, path in zip(told, files, strict=True))


def table(compared: Comparison, names: Sequence[str]) -> Iterator[str]:
    """Yield a table as lines: a column for each file, seconds and their ratio to the first's."""
    width = max(16, *(len(name) + 2 for name in names))
    yield f"{compared.name}: " + ", ".join(f"{calls} calls" for calls in compared.calls)
    yield f"{'seconds':<28}" + "".join(f"{name:>{width}}" for name in names)
    for lines in (compared.numbers, compared.classes):
        for line in lines:
            cells = zip(line.seconds, line.ratios, strict=True)
            kinds = " ".join(dict.fromkeys(kind for kind in line.kinds if kind))
            name = f"{line.name[:22]:<22} {kinds:<5}"
            yield f"{name:<28}" + "".join(f"{shown(*cell):>{width}}" for cell in cells)


def shown(seconds: float | None, ratio: float | None) -> str:
    """Return seconds and a ratio as text, "-" for what a profile does not tell."""
    if seconds is None:
        return "-"
    return f"{seconds:.3f}" + (f" {ratio:.2f}x" if ratio is not None else "")


def as_json(compared: Sequence[Comparison], names: Sequence[str]) -> Mapping[str, object]:
    """Return comparisons as a JSON object."""
    return {
        "files": list(names),
        "compared": [
            {
                "name": each.name,
                "calls": list(each.calls),
                "numbers": {line.name: list(line.seconds) for line in each.numbers},
                "classes": {line.name: list(line.seconds) for line in each.classes},
            }
            for each in compared
        ],
    }
