"""Theano's textual profile, ``ProfileStats.summary``, read back.

The format is that of ``theano/compile/profiling.py``, unchanged from Theano 0.7 to 1.0.5. Rows
say by their type whether an op runs as ``C`` or in Python, ``Py`` (``C Py``: some of either).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# The ops that are BLAS calls. Dot is what a product is before Theano binds it to one.
BLAS_OPS = frozenset(
    {"BatchedDot", "CGemv", "CGer", "Dot", "Dot22", "Dot22Scalar", "Gemm", "Gemv", "Ger"}
)
TITLE = re.compile(r"^(Function profiling|Scan Op profiling.*?)\s*$", re.MULTILINE)
SECTION = re.compile(r"^(Class|Ops|Apply)\n-+\n", re.MULTILINE)
ROW = re.compile(
    r"^ +(?P<percent>[\d.]+)% +[\d.]+% +(?P<seconds>[\d.]+)s +(?P<per_call>[\d.e+-]+)s"
    r" +(?P<kind>C Py|PyC|C|Py) +(?P<calls>\d+) +(?P<nodes>\d+) +(?P<name>\S.*)$",
    re.MULTILINE,
)
CALLS = re.compile(r"Time in (\d+) calls (?:to|of) [^:)]+?(?::|\) ) *([\d.e+-]+)s")
NUMBERS = {
    "compile": re.compile(r"Total compile time: ([\d.e+-]+)s"),
    "optimizer": re.compile(r"Theano Optimizer time: ([\d.e+-]+)s"),
    "linker": re.compile(r"Theano Linker time [^:]*: ([\d.e+-]+)s"),
    "nodes": re.compile(r"Number of Apply nodes: (\d+)"),
}


class ProfileError(ValueError):
    """The text is no profile of Theano's."""


@dataclass(frozen=True)
class Row:
    """A line of the Class or Ops table; kind is its type: C, Py, or some of either."""

    name: str
    kind: str
    seconds: float
    percent: float
    calls: int
    nodes: int


@dataclass(frozen=True)
class Profile:
    """One profile: of a function, or of a scan op, which says nothing of its compilation.

    seconds is the time in all calls; numbers has the seconds of ``compile``, ``optimizer`` and
    ``linker`` and the number of Apply ``nodes``, where the profile gives them.
    """

    title: str
    calls: int
    seconds: float
    numbers: dict[str, float]
    classes: tuple[Row, ...]
    ops: tuple[Row, ...]


def parse(text: str) -> tuple[Profile, ...]:
    """Read every profile in the text, in order; raises ProfileError if there is none."""
    starts = list(TITLE.finditer(text))
    if not starts:
        raise ProfileError("the text holds no 'Function profiling' and no 'Scan Op profiling'")
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return tuple(
        _profile(start[1], text[start.end() : end]) for start, end in zip(starts, ends, strict=True)
    )


def _profile(title: str, text: str) -> Profile:
    calls = CALLS.search(text)
    if calls is None:
        raise ProfileError(f"'{title}' does not say how often it was called")
    # Splitting at a pattern with one group gives: text, heading, text, heading, text ...
    _, *parts = SECTION.split(text)
    tables = dict(zip(parts[::2], parts[1::2], strict=True))
    found = {name: pattern.search(text) for name, pattern in NUMBERS.items()}
    return Profile(
        title,
        int(calls[1]),
        float(calls[2]),
        {name: float(match[1]) for name, match in found.items() if match},
        tuple(_rows(tables.get("Class", ""))),
        tuple(_rows(tables.get("Ops", ""))),
    )


def _rows(table: str) -> Iterator[Row]:
    for match in ROW.finditer(table):
        yield Row(
            # Theano 0.7 writes a class as <class 'theano.tensor.elemwise.Elemwise'>.
            name=match["name"].removeprefix("<class '").removesuffix("'>").strip(),
            kind=match["kind"],
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


def render(profile: Profile, rows: int = 6) -> tuple[str, ...]:
    """Return the head of a profile's Class and Ops tables as lines of at most 100 characters."""
    lines = [f"{profile.title}: {profile.calls} calls, {profile.seconds:.3f} s"]
    for heading, table in (("Class", profile.classes), ("Op", profile.ops)):
        lines.append(f"  {'%':>5} {'seconds':>9} {'type':<4} {'calls':>8} {'nodes':>6} {heading}")
        lines += [
            f"  {row.percent:5.1f} {row.seconds:9.3f} {row.kind:<4} {row.calls:8} {row.nodes:6}"
            f" {row.name}"[:100]
            for row in table[:rows]
        ]
        if table[rows:]:
            lines.append(f"        ({len(table) - rows} more)")
    return tuple(lines)
