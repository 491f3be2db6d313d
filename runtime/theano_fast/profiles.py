"""Theano's textual profile, ``ProfileStats.summary``, read back.

The format is that of ``theano/compile/profiling.py``, which kept it from Theano 0.6 to 1.0.5: lines
with one number each, then the tables Class, Ops and Apply, each of the first rows and a line that
sums up the remaining ones. Rows say by their type whether an op runs as ``C`` or in Python, ``Py``
(``C Py``: some of either).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

# The ops that are BLAS calls. Dot is what a product is before Theano binds it to one.
BLAS_OPS = frozenset(
    {"BatchedDot", "CGemv", "CGer", "Dot", "Dot22", "Dot22Scalar", "Gemm", "Gemv", "Ger"}
)
TITLE = re.compile(r"\s*(Function profiling|Scan Op profiling.*?)\s*")
OLDER = re.compile(r"\s*ProfileMode\.print_summary\(\)")
TABLES = ("Class", "Ops", "Apply")
RULE = re.compile(r"\s*-+\s*")
NUMBER = r"[\d.]+(?:e[+-]\d+)?"
ROW = re.compile(
    rf"\s*(?P<percent>{NUMBER})%\s+{NUMBER}%\s+(?P<seconds>{NUMBER})s\s+{NUMBER}s\s+"
    r"(?:(?P<kind>C +Py|PyC|C|Py)\s+)?(?P<calls>\d+)\s+(?P<nodes>\d+)"
    # Of profile_memory, of ops that know them.
    rf"(?:\s+{NUMBER}\s+{NUMBER}(?=\s))?(?:\s+(?P<name>\S.*?))?\s*"
)
SHAPE = re.compile(r"\s+((?:input|output) \d+: .*)")
REST = re.compile(
    rf"\s*\.\.\. \(remaining (?P<count>\d+) (?:Classes|Ops|Apply instances) account for\s+"
    rf"(?P<percent>{NUMBER})%\((?P<seconds>{NUMBER})s\) of the runtime\)\s*"
)
CALLS = re.compile(rf"\s*Time in (\d+) calls (?:to|of) [^:)]+?(?::|\) ) *({NUMBER})s")
# By name, the lines that have a number. Those of a Scan are the last two and the steps.
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
    """The text is no profile of Theano's, or a part of one; the message names the line."""


@dataclass(frozen=True)
class Row:
    """A line of a table; kind is its type, "" in Apply: C, Py, or some of either.

    nodes is the number of Apply nodes; in Apply, the number of the node, of which notes are lines:
    the shapes that profile_memory adds.
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
    """The first rows of a table, and the count, percent and seconds of those that it leaves out."""

    rows: tuple[Row, ...] = ()
    left: int = 0
    left_percent: float = 0.0
    left_seconds: float = 0.0


@dataclass(frozen=True)
class Profile:
    """One profile: of a function, or of a scan op, which says nothing of its compilation.

    seconds is the time in all calls; numbers has what NUMBERS names, where the profile gives it,
    in seconds but for ``nodes`` and ``steps``.
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
        """What tells it from others: the scan's name, or the function's message."""
        scan = re.fullmatch(r"Scan Op profiling \( (.*) \)", self.title)
        return scan[1] if scan else self.message or self.title

    @property
    def is_scan(self) -> bool:
        """Whether it is of a scan op."""
        return self.title.startswith("Scan Op")

    @property
    def is_sum(self) -> bool:
        """Whether it is the sum that follows the profiles of several functions."""
        return self.name.startswith("Sum of all(")


def parse(text: str) -> tuple[Profile, ...]:
    """Read every profile in the text, in order; raises ProfileError if there is none."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if TITLE.fullmatch(line)]
    if not starts:
        old = [number for number, line in enumerate(lines, 1) if OLDER.match(line)]
        raise ProfileError(
            f"line {old[0]}: a summary of mode=ProfileMode has other tables; run with profile=True"
            if old
            else "line 1: the text holds no 'Function profiling' and no 'Scan Op profiling'"
        )
    ends = [*starts[1:], len(lines)]
    return tuple(_profile(lines, start, end) for start, end in zip(starts, ends, strict=True))


def _profile(lines: Sequence[str], start: int, end: int) -> Profile:
    title = str(TITLE.fullmatch(lines[start])[1])  # type: ignore[index]
    calls, message, at, tips = None, "", start + 1, list[str]()
    numbers: dict[str, float] = {}
    tables: dict[str, Table] = {}
    while at < end:
        line = lines[at]
        table = line.strip()
        if table in TABLES and at + 1 < end and RULE.fullmatch(lines[at + 1]):
            tables[table], at = _table(lines, table, at + 2, end)
            continue
        calls = calls or CALLS.match(line)
        if told := MESSAGE.fullmatch(line):
            message = "" if told[1] == "None" else told[1]
        if tip := TIP.fullmatch(line):
            tips.append(tip[1])
        for name, pattern in NUMBERS.items():
            if found := pattern.match(line):
                numbers.setdefault(name, float(found[1]))
        at += 1
    if calls is None:
        raise ProfileError(f"line {end}: '{title}' does not say how often it was called")
    missing = [name for name in TABLES if name not in tables]
    # Without profiling.time_thunks, or calls, there is none.
    if missing and int(calls[1]) and (tables or numbers.get("thunks")):
        raise ProfileError(f"line {end}: '{title}' ends before the table {missing[0]}")
    return Profile(title, int(calls[1]), float(calls[2]), numbers, message, tables, tuple(tips))


def _table(lines: Sequence[str], name: str, start: int, end: int) -> tuple[Table, int]:
    """Return a table, whose heading is at start, and the number of the line after it."""
    rows: list[Row] = []
    for at in range(start + 1, end):
        line = lines[at]
        if rest := REST.fullmatch(line):
            left = int(rest["count"]), float(rest["percent"]), float(rest["seconds"])
            return Table(tuple(rows), *left), at + 1
        if match := ROW.fullmatch(line):
            rows.append(_row(match))
        elif rows and (shape := SHAPE.fullmatch(line)):
            last = rows.pop()
            rows.append(Row(**{**vars(last), "notes": (*last.notes, shape[1])}))
        else:
            raise ProfileError(f"line {at + 1}: this is no row of the table {name}: {line[:60]!r}")
    raise ProfileError(f"line {end}: the text ends in the table {name}")


def _row(match: re.Match[str]) -> Row:
    return Row(
        # Theano 0.7 writes a class as <class 'theano.tensor.elemwise.Elemwise'>.
        name=(match["name"] or "").removeprefix("<class '").removesuffix("'>").strip(),
        kind=" ".join((match["kind"] or "").split()),
        seconds=float(match["seconds"]),
        percent=float(match["percent"]),
        calls=int(match["calls"]),
        nodes=int(match["nodes"]),
    )


def python_blas(profile: Profile) -> tuple[Row, ...]:
    """Return the BLAS classes of a profile that do not run as C, all or in part."""
    return tuple(row for row in blas(profile) if row.kind != "C")


def blas(profile: Profile) -> tuple[Row, ...]:
    """Return the rows of a profile's Class table that are BLAS calls."""
    return tuple(row for row in profile.classes if row.name.rpartition(".")[2] in BLAS_OPS)


def render(profile: Profile, rows: int = 6) -> Iterator[str]:
    """Yield the head of a profile's Class and Ops tables as lines of at most 100 characters."""
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
