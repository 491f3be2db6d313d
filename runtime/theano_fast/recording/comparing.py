"""Two records of a program, call by call in the order of the first: where they part."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from theano_fast.recording.recorder import FORMAT

# How far values may be apart, as a part of the largest of their array: what other orders of sums,
# and other libms, make of some training steps. Integers and booleans must be the same.
TOLERANCES = {
    "float16": 1e-2,
    "float32": 1e-4,
    "complex64": 1e-4,
    "float64": 1e-9,
    "complex128": 1e-9,
}


class RecordError(ValueError):
    """A record cannot be read, or made; the message names it."""


@dataclass(frozen=True)
class Difference:
    """Where two records part: a function, its call, a value, and what of it."""

    function: str
    call: int
    value: str
    told: str

    def __str__(self) -> str:
        call = f", call {self.call}" if self.call else ""
        return f"{self.function}{call}: {self.value} {self.told}"


@dataclass
class Function:
    """What the comparison of a function's calls found; far is in tolerances."""

    name: str
    calls: int = 0
    values: int = 0
    equal: int = 0
    far: float = 0.0
    differences: int = 0


@dataclass(frozen=True)
class Comparison:
    """The functions of two records, their first difference, if any, and notes on it."""

    functions: tuple[Function, ...]
    first: Difference | None
    notes: tuple[str, ...] = ()


def read(file: Path) -> dict[str, Any]:
    """Read a record.

    Raises:
        RecordError: it cannot be read, or is none.
    """
    try:
        tree = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(f"{file} is no record, or cut: {error}") from error
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        raise RecordError(f"{file} is no record of theano-fast record, or another version's")
    if not tree["functions"]:
        raise RecordError(f"{file} holds nothing: the program called no function of Theano's")
    return tree


def name_of(function: dict[str, Any]) -> str:
    """Return what tells a function from others: its number, name, and line of its first call."""
    return " ".join(filter(None, (f"{function['number']}", function["name"], function["line"])))


def compare(ours: dict[str, Any], theirs: dict[str, Any], factor: float = 1.0) -> Comparison:
    """Hold a record against another, with the tolerances times the factor."""
    functions, found = [], list[tuple[int, Difference]]()
    notes = list[str]()
    for one, other in zip(ours["functions"], theirs["functions"], strict=False):
        name = name_of(one)
        told = Function(name)
        functions.append(told)
        at = one["calls"][0]["at"] if one["calls"] else 0
        parts = [key for key in ("name", "line") if one[key] != other[key]]
        parts += [
            key for key in ("inputs", "outputs", "updates") if len(one[key]) != len(other[key])
        ]
        if parts:
            found.append((at, Difference(name, 0, "is", f"another function: {name_of(other)}")))
            break
        for call, like in _calls(one, other):
            told.calls += 1
            where = [
                Difference(name, call["call"], *each)
                for each in _values(one, call, like, told, factor)
            ]
            told.differences += len(where)
            found += [(call["at"], each) for each in where[:1]]
            if where and "nodes" in call and where[0].value.startswith(("output", "update")):
                notes.append(
                    "no node of the graph as written differs: what optimizers made of it does"
                )
        if one["called"] != other["called"]:
            counts = f"{one['called']} times, and {other['called']} times in the other"
            found.append((ours_end(ours), Difference(name, 0, "is called", counts)))
        if one.get("nodes", []) != other.get("nodes", []) and "nodes" in one and "nodes" in other:
            notes.append(f"{name}: the graphs as written are not the same; nodes were not compared")
    count, others = len(ours["functions"]), len(theirs["functions"])
    if count != others and len(functions) == min(count, others):
        told_of = Difference(
            "the program", 0, "calls", f"{count} functions, and {others} in the other"
        )
        found.append((ours_end(ours) + 1, told_of))
    first = min(found, key=lambda each: each[0])[1] if found else None
    return Comparison(tuple(functions), first, tuple(dict.fromkeys(notes)))


def ours_end(record: dict[str, Any]) -> int:
    """Return a place after all calls of a record."""
    return 1 + max(
        (call["at"] for each in record["functions"] for call in each["calls"]), default=0
    )


def _calls(one: dict[str, Any], other: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    likes = {call["call"]: call for call in other["calls"]}
    for call in one["calls"]:
        if call["call"] in likes:
            yield call, likes[call["call"]]


def _values(
    function: dict[str, Any], call: Any, like: Any, told: Function, factor: float
) -> Iterator[tuple[str, str]]:
    """Yield the values of a call that differ, in the order in which they come to be."""
    for key in ("inputs", "nodes", "outputs", "updates"):
        if key not in call or key not in like or len(call[key]) != len(like[key]):
            continue
        names = function[key]
        for place, (one, other) in enumerate(zip(call[key], like[key], strict=True)):
            told.values += 1
            if one == other:
                told.equal += 1
                continue
            text, far = differ(one, other)
            told.far = max(told.far, far)
            if far > factor:
                name = names[place] if place < len(names) else ""
                which = key[:-1] if key == "nodes" else f"{key[:-1]} {place}"
                yield f"{which} {name}".strip(), text


def differ(one: dict[str, Any], other: dict[str, Any]) -> tuple[str, float]:
    """Say how two summaries differ, and by how many tolerances."""
    for key in ("dtype", "shape", "finite"):
        if one.get(key) != other.get(key):
            what = (
                "has {} finite values, {} in the other"
                if key == "finite"
                else "is {}, {} in the other"
            )
            return what.format(one.get(key), other.get(key)), math.inf
    if one.get("sha256") == other.get("sha256"):
        return "is the same", 0.0
    if one["dtype"] not in TOLERANCES:
        return f"of {one['dtype']} differs", math.inf
    largest = max(one["largest"], other["largest"]) or 1.0
    worst, values = 0.0, (0.0, 0.0)
    for key in ("sample", "means"):
        for pair in zip(one.get(key, ()), other.get(key, ()), strict=True):
            far = _apart(*pair) / largest
            if far > worst:
                worst, values = far, pair
    told = f"differs by {worst:.1e} of its largest value, as {values[0]:.9g} from {values[1]:.9g}"
    return told, worst / TOLERANCES[one["dtype"]]


def _apart(one: float, other: float) -> float:
    """Return how far values are apart: not at all if they are alike infinite, or no numbers."""
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    far = abs(one - other)
    return math.inf if math.isnan(far) else far


def table(compared: Comparison, names: Sequence[str]) -> Iterator[str]:
    """Yield a comparison as lines: each function, then where the records part first."""
    heads = f"{'calls':>7} {'values':>7} {'same':>7} {'worst':>9}"
    yield f"{heads}  function ({' against '.join(names)})"
    for each in compared.functions:
        yield f"{each.calls:7} {each.values:7} {each.equal:7} {each.far:9.2g}  {each.name}"
    yield "same: to the last bit; worst: in tolerances, " + ", ".join(
        f"{dtype} {part:g}" for dtype, part in TOLERANCES.items() if dtype.startswith("float")
    )
    if compared.first is None:
        yield "nothing differs beyond rounding"
        return
    yield f"differs first: {compared.first}"
    yield from compared.notes
    if compared.first.value.startswith(("output", "update")) and not compared.notes:
        yield f"record both with --nodes {compared.first.function.split()[0]} to see which node"
