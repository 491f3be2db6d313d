"""Compare two records of a program, call by call, and find their first difference."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from theano_fast.recording.recorder import FORMAT

# Maps a dtype to the allowed difference of two values, as a fraction of the array's largest value.
# Within a few training steps, another order of summation or another libm causes differences of this
# size. Integers and booleans must be equal.
TOLERANCES = {
    "float16": 1e-2,
    "float32": 1e-4,
    "complex64": 1e-4,
    "float64": 1e-9,
    "complex128": 1e-9,
}


class RecordError(ValueError):
    """A record cannot be written or read; the message names the file or the program."""


@dataclass(frozen=True)
class Difference:
    """A difference of two records.

    ``call`` is the number of the function's call; 0 if no single call differs. ``value`` names the
    different value, such as "output 0".
    """

    function: str
    call: int
    value: str
    description: str

    def __str__(self) -> str:
        call = f", call {self.call}" if self.call else ""
        return f"{self.function}{call}: {self.value} {self.description}"

    def to_json(self) -> dict[str, Any]:
        """Return the difference as a JSON object."""
        return {
            "function": self.function,
            "call": self.call,
            "value": self.value,
            "description": self.description,
        }


@dataclass
class Function:
    """The numbers of a function's compared calls, compared values, equal values, and differences.

    ``distance`` is the largest difference of two values, as a multiple of their tolerance.
    """

    name: str
    calls: int = 0
    values: int = 0
    equal: int = 0
    distance: float = 0.0
    differences: int = 0


@dataclass(frozen=True)
class Comparison:
    """The functions of two records, the first difference or None, and notes."""

    functions: tuple[Function, ...]
    first: Difference | None
    notes: tuple[str, ...] = ()


def read(file: Path) -> dict[str, Any]:
    """Read a record.

    Raises:
        RecordError: the file cannot be read, or is not a record.
    """
    try:
        tree = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(f"{file} is not a record, or is truncated: {error}") from error
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        raise RecordError(f"{file} is not a record of this version of theano-fast record")
    if not tree["functions"]:
        raise RecordError(f"{file} is empty: the program called no Theano function")
    return tree


def format_name(function: dict[str, Any]) -> str:
    """Return a unique name of a function: its number, its name, and the line of its first call."""
    return " ".join(filter(None, (f"{function['number']}", function["name"], function["line"])))


def compare(one: dict[str, Any], other: dict[str, Any], factor: float = 1.0) -> Comparison:
    """Compare two records; ``factor`` multiplies the tolerances."""
    functions, notes = list[Function](), list[str]()
    # Each difference with the position of its call among all recorded calls of the first record.
    differences = list[tuple[int, Difference]]()
    for function, match in zip(one["functions"], other["functions"], strict=False):
        name = format_name(function)
        result = Function(name)
        functions.append(result)
        if not _is_same(function, match):
            order = function["calls"][0]["at"] if function["calls"] else 0
            text = f"another function: {format_name(match)}"
            differences.append((order, Difference(name, 0, "is", text)))
            break
        for call, matching_call in _pair_calls(function, match):
            result.calls += 1
            different = [
                Difference(name, call["call"], *pair)
                for pair in _compare_values(function, call, matching_call, result, factor)
            ]
            result.differences += len(different)
            differences += [(call["at"], difference) for difference in different[:1]]
            if (
                different
                and call.get("nodes")
                and different[0].value.startswith(("output", "update"))
            ):
                notes.append(
                    "no node of the unoptimized graph differs: only the optimized graph does"
                )
        if function["called"] != match["called"]:
            counts = f"{function['called']} times, and {match['called']} times in the other record"
            differences.append((_find_end(one), Difference(name, 0, "is called", counts)))
        if "nodes" in function and "nodes" in match and function["nodes"] != match["nodes"]:
            notes.append(f"{name}: the unoptimized graphs differ; their nodes were not compared")
    count, other_count = len(one["functions"]), len(other["functions"])
    if count != other_count and len(functions) == min(count, other_count):
        text = f"{count} functions, and {other_count} in the other record"
        difference = Difference("the program", 0, "calls", text)
        differences.append((_find_end(one) + 1, difference))
    first = min(differences, key=lambda pair: pair[0])[1] if differences else None
    return Comparison(tuple(functions), first, tuple(dict.fromkeys(notes)))


def _is_same(function: dict[str, Any], match: dict[str, Any]) -> bool:
    """Return whether two functions have the same name, line, and numbers of values."""
    return all(function[key] == match[key] for key in ("name", "line")) and all(
        len(function[key]) == len(match[key]) for key in ("inputs", "outputs", "updates")
    )


def _find_end(record: dict[str, Any]) -> int:
    """Return the position that follows the last recorded call of a record."""
    return 1 + max(
        (call["at"] for function in record["functions"] for call in function["calls"]), default=0
    )


def _pair_calls(one: dict[str, Any], other: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the calls that both records have, without nodes that cannot be compared.

    Nodes can be compared if the unoptimized graphs are equal, and both calls have all nodes.
    """
    matches = {call["call"]: call for call in other["calls"]}
    equal_graphs = one.get("nodes") == other.get("nodes")
    for call in one["calls"]:
        if call["call"] in matches:
            match = matches[call["call"]]
            if equal_graphs and len(call.get("nodes", ())) == len(match.get("nodes", ())):
                yield call, match
            else:
                yield _drop_nodes(call), _drop_nodes(match)


def _drop_nodes(call: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in call.items() if key != "nodes"}


def _compare_values(
    function: dict[str, Any], call: Any, matching_call: Any, result: Function, factor: float
) -> Iterator[tuple[str, str]]:
    """Yield (value, description) for each value that differs, in the order of computation.

    Args:
        function: the function in the first record.
        call: a call of the function in the first record.
        matching_call: the same call in the other record.
        result: the numbers of compared, equal and different values, which are increased.
        factor: multiplies the tolerances.
    """
    for key in ("inputs", "nodes", "outputs", "updates"):
        if key not in call or key not in matching_call:
            continue
        if len(call[key]) != len(matching_call[key]):
            continue
        names = function[key]
        for index, (one, other) in enumerate(zip(call[key], matching_call[key], strict=True)):
            result.values += 1
            if one == other:
                result.equal += 1
                continue
            text, distance = describe_difference(one, other)
            result.distance = max(result.distance, distance)
            if distance > factor:
                name = names[index] if index < len(names) else ""
                label = key[:-1] if key == "nodes" else f"{key[:-1]} {index}"
                yield f"{label} {name}".strip(), text


def describe_difference(one: dict[str, Any], other: dict[str, Any]) -> tuple[str, float]:
    """Return the difference of two summaries as text, and as a multiple of the tolerance."""
    for key in ("dtype", "shape", "finite"):
        if one.get(key) != other.get(key):
            template = "has {} finite values, {} in the other record"
            if key != "finite":
                template = f"has {key} {{}}, {{}} in the other record"
            return template.format(one.get(key), other.get(key)), math.inf
    if one.get("sha256") == other.get("sha256"):
        return "is the same", 0.0
    if one["dtype"] not in TOLERANCES:
        return f"of {one['dtype']} differs", math.inf
    largest = max(one["largest"], other["largest"]) or 1.0
    worst, values = 0.0, (0.0, 0.0)
    for key in ("sample", "means"):
        for pair in zip(one.get(key, ()), other.get(key, ()), strict=True):
            distance = _measure_distance(*pair) / largest
            if distance > worst:
                worst, values = distance, pair
    text = (
        f"differs by {worst:.1e} times its largest value: {values[0]:.9g}, {values[1]:.9g} in the"
        " other record"
    )
    return text, worst / TOLERANCES[one["dtype"]]


def _measure_distance(one: float, other: float) -> float:
    """Return the distance of two values: 0 if both are NaN or the same infinity."""
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    distance = abs(one - other)
    return math.inf if math.isnan(distance) else distance


def make_table(comparison: Comparison, names: Sequence[str]) -> Iterator[str]:
    """Yield a comparison as lines: a line for each function, then the first difference."""
    heads = f"{'calls':>7} {'values':>7} {'same':>7} {'worst':>9}"
    yield f"{heads}  function ({' against '.join(names)})"
    for function in comparison.functions:
        counts = f"{function.calls:7} {function.values:7} {function.equal:7}"
        yield f"{counts} {function.distance:9.2g}  {function.name}"
    yield "same: equal bits; worst: largest difference in tolerances of " + ", ".join(
        f"{fraction:g} ({dtype})"
        for dtype, fraction in TOLERANCES.items()
        if dtype.startswith("float")
    )
    if comparison.first is None:
        yield "nothing differs beyond rounding"
        return
    yield f"first difference: {comparison.first}"
    yield from comparison.notes
    if comparison.first.value.startswith(("output", "update")) and not comparison.notes:
        number = comparison.first.function.split()[0]
        yield f"to find the node that differs, record both with --nodes {number}"
