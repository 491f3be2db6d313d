"""Compare profiles of one program under several stacks or versions, by class of op."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from theano_fast import profiles

# The compared numbers, all in seconds, and their labels in the table.
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
# The name of the line for the omitted rows of a table.
OTHERS = "(others)"


class ComparisonError(ValueError):
    """The profiles have no function or scan in common."""


@dataclass(frozen=True)
class Line:
    """A quantity in each file, in seconds; None for a file whose profile lacks the quantity.

    ``kinds`` has the type of a class of ops in each file: C, Py, C Py, or "" without the class.
    """

    name: str
    seconds: tuple[float | None, ...]
    kinds: tuple[str, ...] = ()

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """The ratios of the seconds to the first file's seconds."""
        first = self.seconds[0]
        return tuple(
            value / first if first and value is not None else None for value in self.seconds
        )


@dataclass(frozen=True)
class Comparison:
    """A function or scan in all files: the calls in each file, numbers, and classes of ops."""

    name: str
    calls: tuple[int, ...]
    numbers: tuple[Line, ...]
    classes: tuple[Line, ...]


def compare(files: Sequence[Sequence[profiles.Profile]]) -> tuple[Comparison, ...]:
    """Compare the first file's profiles with the corresponding profiles of the other files.

    Raises:
        ComparisonError: no profile of the first file corresponds to profiles in all other files.
    """
    comparisons = []
    for index, first in enumerate(files[0]):
        others = [_find_match(first, index, file, len(files[0])) for file in files[1:]]
        matches = [profile for profile in others if profile is not None]
        if len(matches) == len(others):
            comparisons.append(_compare([first, *matches]))
    if not comparisons:
        names = "; ".join(", ".join(profile.name for profile in file) for file in files)
        raise ComparisonError(f"no function or scan is in all files: {names}")
    return tuple(comparisons)


def _find_match(
    first: profiles.Profile, index: int, file: Sequence[profiles.Profile], count: int
) -> profiles.Profile | None:
    """Return the profile in a file that corresponds to a profile of the first file.

    This is the profile with the same name. If no profile has this name, it is the profile with the
    same index, if both files have the same number of profiles.

    Args:
        first: the profile of the first file.
        index: the index of this profile.
        file: the profiles of the other file.
        count: the number of profiles in the first file.
    """
    for profile in file:
        if profile.is_scan == first.is_scan and profile.name == first.name:
            return profile
    if len(file) == count and file[index].is_scan == first.is_scan:
        return file[index]
    return None


def _compare(matches: Sequence[profiles.Profile]) -> Comparison:
    numbers = []
    for key, label in NUMBERS.items():
        values = tuple(
            profile.seconds if key == "calls" else profile.numbers.get(key) for profile in matches
        )
        if any(value is not None for value in values):
            numbers.append(Line(label, values))
    tables = [{row.name: row for row in profile.classes} for profile in matches]
    names = list(dict.fromkeys(name for table in tables for name in table))
    classes = [
        Line(
            name.rpartition(".")[2],
            tuple(table[name].seconds if name in table else None for table in tables),
            tuple(table[name].kind if name in table else "" for table in tables),
        )
        for name in names
    ]
    classes.sort(key=lambda line: max(value or 0.0 for value in line.seconds), reverse=True)
    omitted = tuple(
        profile.tables["Class"].omitted_seconds if "Class" in profile.tables else None
        for profile in matches
    )
    return Comparison(
        matches[0].name,
        tuple(profile.calls for profile in matches),
        tuple(numbers),
        (*classes, Line(OTHERS, omitted)),
    )


def make_labels(files: Sequence[Path]) -> tuple[str, ...]:
    """Return a label for each file: its name without the words that occur in all names."""
    words = [path.name.replace(".", "-").split("-") for path in files]
    common = set(words[0]).intersection(*words[1:])
    names = ["-".join(word for word in name if word not in common) for name in words]
    return tuple(name or path.stem for name, path in zip(names, files, strict=True))


def make_table(comparison: Comparison, names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table. A file's column has seconds, and the ratio to the first file."""
    width = max(16, *(len(name) + 2 for name in names))
    yield f"{comparison.name}: " + ", ".join(f"{calls} calls" for calls in comparison.calls)
    yield f"{'seconds':<28}" + "".join(f"{name:>{width}}" for name in names)
    for lines in (comparison.numbers, comparison.classes):
        for line in lines:
            cells = zip(line.seconds, line.ratios, strict=True)
            kinds = " ".join(dict.fromkeys(kind for kind in line.kinds if kind))
            name = f"{line.name[:22]:<22} {kinds:<5}"
            yield f"{name:<28}" + "".join(f"{format_cell(*cell):>{width}}" for cell in cells)


def format_cell(seconds: float | None, ratio: float | None) -> str:
    """Return seconds and a ratio as text, "-" if a profile lacks them."""
    if seconds is None:
        return "-"
    return f"{seconds:.3f}" + (f" {ratio:.2f}x" if ratio is not None else "")


def to_json(comparisons: Sequence[Comparison], names: Sequence[str]) -> Mapping[str, object]:
    """Return comparisons as a JSON object."""
    return {
        "files": list(names),
        "compared": [
            {
                "name": comparison.name,
                "calls": list(comparison.calls),
                "numbers": {line.name: list(line.seconds) for line in comparison.numbers},
                "classes": {line.name: list(line.seconds) for line in comparison.classes},
            }
            for comparison in comparisons
        ],
    }
