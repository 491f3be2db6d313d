"""Parse Theano's textual profiles, which ``ProfileStats.summary`` writes.

The format is the same in Theano 0.6 to 1.0.5 (``theano/compile/profiling.py``). Lines with one
number each come first, then the tables Class, Ops and Apply. A table contains only its first rows,
and a line with the sum of the omitted rows. A row's type is ``C``, ``Py`` for Python, or ``C Py``
for both.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

# The classes of ops that call BLAS. If possible, the optimizer replaces Dot with another of these
# ops.
BLAS_OPS = frozenset(
    {"BatchedDot", "CGemv", "CGer", "Dot", "Dot22", "Dot22Scalar", "Gemm", "Gemv", "Ger"}
)
TITLE = re.compile(r"\s*(Function profiling|Scan Op profiling.*?)\s*")
# The beginning of a profile of mode=ProfileMode, whose format is not supported.
OLDER = re.compile(r"\s*ProfileMode\.print_summary\(\)")
TABLES = ("Class", "Ops", "Apply")
RULE = re.compile(r"\s*-+\s*")
NUMBER = r"[\d.]+(?:e[+-]\d+)?"
ROW = re.compile(
    rf"\s*(?P<percent>{NUMBER})%\s+{NUMBER}%\s+(?P<seconds>{NUMBER})s\s+{NUMBER}s\s+"
    r"(?:(?P<kind>C +Py|PyC|C|Py)\s+)?(?P<calls>\d+)\s+(?P<nodes>\d+)"
    # profile_memory adds two numbers for some ops.
    rf"(?:\s+{NUMBER}\s+{NUMBER}(?=\s))?(?:\s+(?P<name>\S.*?))?\s*"
)
SHAPE = re.compile(r"\s+((?:input|output) \d+: .*)")
REMAINING = re.compile(
    rf"\s*\.\.\. \(remaining (?P<count>\d+) (?:Classes|Ops|Apply instances) account for\s+"
    rf"(?P<percent>{NUMBER})%\((?P<seconds>{NUMBER})s\) of the runtime\)\s*"
)
CALLS = re.compile(rf"\s*Time in (\d+) calls (?:to|of) [^:)]+?(?::|\) ) *({NUMBER})s")
# Maps the name of a number to the pattern of the number's line. Only the profiles of scans have
# steps, scan_vm and scan_overhead.
NUMBERS = {
    "vm": re.compile(rf"\s*Time in Function.fn.__call__: ({NUMBER})s"),
    "thunks": re.compile(rf"\s*Time in thunks: ({NUMBER})s"),
    "compile": re.compile(rf"\s*Total compile time: ({NUMBER})s"),
    "nodes": re.compile(r"\s*Number of Apply nodes: (\d+)"),
    "optimizer": re.compile(rf"\s*Theano Optimizer time: ({NUMBER})s"),
    "validate": re.compile(rf"\s*Theano validate time: ({NUMBER})s"),
    "linker": re.compile(rf"\s*Theano Linker time [^:]*: ({NUMBER})s"),
    "import": re.compile(rf"\s*Import time ({NUMBER})s"),
    "make_thunk": re.compile(rf"\s*Node make_thunk time ({NUMBER})s"),
    "grad": re.compile(rf"\s*Time in all call to theano\.grad\(\) ({NUMBER})s"),
    "since_import": re.compile(rf"\s*Time since theano import ({NUMBER})s"),
    "steps": re.compile(r".*\(for a total of (\d+) steps\)"),
    "scan_vm": re.compile(rf"\s*Total time spent in calling the VM ({NUMBER})s"),
    "scan_overhead": re.compile(rf"\s*Total overhead \(computing slices\.\.\) ({NUMBER})s"),
}
TIP = re.compile(r"  - (\S.*)")
MESSAGE = re.compile(r"\s*Message: (.*?)\s*")


class ProfileError(ValueError):
    """The text contains no complete profile; the message names the line with the error."""


@dataclass(frozen=True)
class Row:
    """A row of a table.

    ``kind`` is the type: C, Py, C Py, or "" in the table Apply. ``nodes`` is the number of Apply
    nodes; in the table Apply, it is the node's index in the graph. ``notes`` are lines about a
    node: the shapes that the flag profile_memory adds, and the program's line.
    """

    name: str
    kind: str
    seconds: float
    percent: float
    calls: int
    nodes: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """The first rows of a table; the number of the omitted rows, and their percent and seconds."""

    rows: tuple[Row, ...] = ()
    omitted: int = 0
    omitted_percent: float = 0.0
    omitted_seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the table as a JSON object."""
        return {
            "rows": [asdict(row) for row in self.rows],
            "omitted": self.omitted,
            "omitted_percent": self.omitted_percent,
            "omitted_seconds": self.omitted_seconds,
        }


@dataclass(frozen=True)
class Profile:
    """A profile of a function or of a scan op; a scan's profile has no compilation times.

    ``seconds`` is the time of all calls. ``numbers`` has the values of NUMBERS that the profile
    contains, in seconds except ``nodes`` and ``steps``. ``tips`` are the tips that Theano prints.
    """

    title: str
    calls: int
    seconds: float
    numbers: dict[str, float]
    message: str = ""
    tables: dict[str, Table] = field(default_factory=dict)
    tips: tuple[str, ...] = ()

    @property
    def classes(self) -> tuple[Row, ...]:
        """The rows of the table Class."""
        return self.tables.get("Class", Table()).rows

    @property
    def ops(self) -> tuple[Row, ...]:
        """The rows of the table Ops."""
        return self.tables.get("Ops", Table()).rows

    @property
    def name(self) -> str:
        """The scan's name, or the function's message, such as the FILE:LINE of theano.function."""
        scan = re.fullmatch(r"Scan Op profiling \( (.*) \)", self.title)
        return scan[1] if scan else self.message or self.title

    @property
    def is_scan(self) -> bool:
        """Whether this is a scan op's profile."""
        return self.title.startswith("Scan Op")

    @property
    def is_sum(self) -> bool:
        """Whether this is the sum of the profiles of several functions."""
        return self.name.startswith("Sum of all(")

    def to_json(self) -> dict[str, Any]:
        """Return the profile as a JSON object."""
        return {
            **asdict(self),
            "tables": {name: table.to_json() for name, table in self.tables.items()},
        }


def parse(text: str) -> tuple[Profile, ...]:
    """Parse all profiles in ``text``, in order.

    Raises:
        ProfileError: the text contains no profile, or an incomplete profile.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if TITLE.fullmatch(line)]
    if not starts:
        old = [number for number, line in enumerate(lines, 1) if OLDER.match(line)]
        raise ProfileError(
            f"line {old[0]}: the format of mode=ProfileMode is not supported; run the program with"
            " profile=True"
            if old
            else "line 1: the text contains no 'Function profiling' and no 'Scan Op profiling'"
        )
    ends = [*starts[1:], len(lines)]
    return tuple(_parse_profile(lines, *pair) for pair in zip(starts, ends, strict=True))


def _parse_profile(lines: Sequence[str], start: int, end: int) -> Profile:
    title = str(TITLE.fullmatch(lines[start])[1])  # type: ignore[index]
    calls, message, index, tips = None, "", start + 1, list[str]()
    numbers: dict[str, float] = {}
    tables: dict[str, Table] = {}
    while index < end:
        line = lines[index]
        table = line.strip()
        if table in TABLES and index + 1 < end and RULE.fullmatch(lines[index + 1]):
            tables[table], index = _parse_table(lines, table, index + 2, end)
            continue
        calls = calls or CALLS.match(line)
        if match := MESSAGE.fullmatch(line):
            message = "" if match[1] == "None" else match[1]
        if tip := TIP.fullmatch(line):
            tips.append(tip[1])
        for name, pattern in NUMBERS.items():
            if number := pattern.match(line):
                numbers.setdefault(name, float(number[1]))
        index += 1
    if calls is None:
        raise ProfileError(f"line {end}: '{title}' has no line with the number of calls")
    missing = [name for name in TABLES if name not in tables]
    # With profiling.time_thunks=False, or without calls, a profile has no tables.
    if missing and int(calls[1]) and (tables or numbers.get("thunks")):
        raise ProfileError(f"line {end}: '{title}' ends before the table {missing[0]}")
    return Profile(title, int(calls[1]), float(calls[2]), numbers, message, tables, tuple(tips))


def _parse_table(lines: Sequence[str], name: str, start: int, end: int) -> tuple[Table, int]:
    """Return a table, and the index of the line after the table.

    Args:
        lines: the lines of the text.
        name: the table's name.
        start: the index of the line with the column headings.
        end: the index after the profile's last line.
    """
    rows: list[Row] = []
    for index in range(start + 1, end):
        line = lines[index]
        if match := REMAINING.fullmatch(line):
            omitted = int(match["count"]), float(match["percent"]), float(match["seconds"])
            return Table(tuple(rows), *omitted), index + 1
        if match := ROW.fullmatch(line):
            rows.append(_parse_row(match))
        elif rows and rows[-1].name.count("[") > rows[-1].name.count("]"):
            # A row has several lines if its name contains an array, such as a constant on a GPU.
            last = rows.pop()
            rows.append(Row(**{**vars(last), "name": f"{last.name} {line.strip()}"}))
        elif rows and (shape := SHAPE.fullmatch(line)):
            last = rows.pop()
            rows.append(Row(**{**vars(last), "notes": (*last.notes, shape[1])}))
        else:
            raise ProfileError(
                f"line {index + 1}: this is not a row of the table {name}: {line[:60]!r}"
            )
    raise ProfileError(f"line {end}: the text ends in the table {name}")


def _parse_row(match: re.Match[str]) -> Row:
    return Row(
        # Theano 0.7 writes a class as <class 'theano.tensor.elemwise.Elemwise'>.
        name=(match["name"] or "").removeprefix("<class '").removesuffix("'>").strip(),
        kind=" ".join((match["kind"] or "").split()),
        seconds=float(match["seconds"]),
        percent=float(match["percent"]),
        calls=int(match["calls"]),
        nodes=int(match["nodes"]),
    )


def find_python_blas(profile: Profile) -> tuple[Row, ...]:
    """Return the rows of find_blas whose ops run in Python, at least in some nodes."""
    return tuple(row for row in find_blas(profile) if row.kind != "C")


def find_blas(profile: Profile) -> tuple[Row, ...]:
    """Return the rows of a profile's Class table that are BLAS calls."""
    return tuple(row for row in profile.classes if row.name.rpartition(".")[2] in BLAS_OPS)


def render(profile: Profile, rows: int = 6) -> Iterator[str]:
    """Yield the first rows of a profile's tables Class and Ops, cut off at 100 characters."""
    yield f"{profile.title}: {profile.calls} calls, {profile.seconds:.3f} s"
    for heading, table in (("Class", profile.classes), ("Op", profile.ops)):
        yield f"  {'%':>5} {'seconds':>9} {'type':<4} {'calls':>8} {'nodes':>6} {heading}"
        for row in table[:rows]:
            yield (
                f"  {row.percent:5.1f} {row.seconds:9.3f} {row.kind:<4} {row.calls:8}"
                f" {row.nodes:6} {row.name}"[:100]
            )
        if table[rows:]:
            yield f"        ({len(table) - rows} more)"
