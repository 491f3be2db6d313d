"""Where two runs of a program differ.

Types, shapes, integers and booleans must be equal; floats may differ by a relative error, and be
nan or infinite only together. Zeros of either sign are one: Theano's optimizations take them so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

FLOATS = ("float16", "float32", "float64", "complex64", "complex128")


@dataclass(frozen=True)
class Difference:
    """The first difference of a run from what is expected of it.

    Args:
        kind: died, hangs, refused, compiled, raised, returned, type, shape, value, changed (an
            input), overwritten (an earlier result), shared or logged (an error of Theano's).
        situation: in which it happened.
        call: its number, -1 where it was no call.
        output: its number, -1 where it is no output's.
        expected: what should have been, in words.
        found: what was, in words.
        finite: whether both are finite where they differ.
    """

    kind: str
    situation: str
    call: int = -1
    output: int = -1
    expected: str = ""
    found: str = ""
    finite: bool = True

    @property
    def like(self) -> tuple[str, bool, str]:
        """What a smaller program must have in common with it."""
        told = self.expected if self.kind in ("returned", "compiled") else self.found
        named = self.kind in ("returned", "compiled", "raised", "refused", "logged")
        return self.kind, self.finite, told.partition(":")[0] if named else ""

    def __str__(self) -> str:
        place = f" in call {self.call + 1}" if self.call >= 0 else ""
        place += f", output {self.output + 1}" if self.output >= 0 else ""
        told = f": {self.found}, not {self.expected}" if self.expected or self.found else ""
        return f"{self.kind} ({self.situation}{place}){told}"


def compare(expected: dict[str, Any], found: dict[str, Any], tolerance: float) -> Difference | None:
    """The first difference between two answers of workers; None if there is none.

    Args:
        expected: the answer of the oracle, whose run is the plain one.
        found: the answer to judge, all runs of which must be alike.
        tolerance: the relative error of floats.
    """
    if "died" in expected or ("refused" in expected and "refused" in found):
        return None
    if "died" in found:
        kind = "hangs" if found["died"] == "hangs" else "died"
        return Difference(kind, "plain", found=found["died"])
    if "refused" in expected or "refused" in found:
        kind = "refused" if "refused" in found else "compiled"
        told = [each.get("refused", "a function") for each in (expected, found)]
        return Difference(kind, "plain", expected=told[0], found=told[1])
    plain = expected["runs"]["plain"]
    for situation, run in found["runs"].items():
        difference = _run(plain, run, situation, tolerance)
        if difference:
            return difference
    if logged := [line for line in found.get("logged", []) if line not in expected["logged"]]:
        return Difference("logged", "plain", found=logged[0])
    return None


def compare_values(
    expected: dict[str, Any], found: dict[str, Any], tolerance: float
) -> Difference | None:
    """The first difference of what a plain run returned from values, some of which are None.

    ``expected`` may ask for a larger tolerance.
    """
    tolerance = max(tolerance, expected.get("tolerance", 0.0))
    calls = found.get("runs", {}).get("plain", {}).get("calls", [])
    for call, (old, new) in enumerate(zip(expected["runs"]["plain"]["calls"], calls)):
        if "error" in new:
            # Shared variables may be anything after it.
            break
        for output, (one, other) in enumerate(zip(old["outputs"], new["outputs"])):
            if one and (difference := _value(one, other, tolerance)):
                kind, finite = difference
                told = _short(one), _short(other), finite
                return Difference(kind, "plain", call, output, *told)
    return None


def _run(
    expected: dict[str, Any], found: dict[str, Any], situation: str, tolerance: float
) -> Difference | None:
    if "died" in found or "raised" in found or "refused" in found:
        (ended,) = (key for key in ("died", "raised", "refused") if key in found)
        return Difference(ended, situation, found=found[ended], expected="a run")
    for call, (old, new) in enumerate(zip(expected["calls"], found["calls"])):
        if "error" in old or "error" in new:
            if "error" in old and "error" in new:
                if expected["shared"]:
                    # Whether an update was made before is not defined.
                    break
                continue
            kind = "raised" if "error" in new else "returned"
            one, other = (each.get("error") or _short(each["outputs"]) for each in (old, new))
            return Difference(kind, situation, call, expected=one, found=other)
        for output, (one, other) in enumerate(zip(old["outputs"], new["outputs"])):
            difference = _value(one, other, tolerance)
            if difference:
                kind, finite = difference
                return Difference(kind, situation, call, output, _short(one), _short(other), finite)
        for kind in ("changed", "overwritten"):
            if kind in new and kind not in old:
                return Difference(kind, situation, call, found=str(new[kind])[:200])
    else:
        for one, other in zip(expected["shared"], found["shared"] or ()):
            difference = _value(one, other, tolerance)
            if difference:
                told = _short(one), _short(other), difference[1]
                return Difference("shared", situation, -1, -1, *told)
    return None


def _value(old: Sequence[Any], new: Sequence[Any], tolerance: float) -> tuple[str, bool] | None:
    """The kind of the difference of two encoded values, and whether it is of finite elements."""
    if old[0] != new[0]:
        return "type", True
    if old[1] != new[1]:
        return "shape", True
    if old[0] not in FLOATS:
        return None if old[2] == new[2] else ("value", True)
    pairs = list(zip(_flat(old[2]), _flat(new[2])))
    sizes = [abs(one) for one, _ in pairs if math.isfinite(one)]
    slack = tolerance * max(1.0, *sizes) if sizes else tolerance
    wrong = [(one, other) for one, other in pairs if not same(one, other, slack)]
    if not wrong:
        return None
    return "value", any(math.isfinite(one) and math.isfinite(other) for one, other in wrong)


def same(one: float, other: float, slack: float) -> bool:
    """Whether two floats are the same but for so much; any nan is any other."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if math.isinf(one) or math.isinf(other):
        return one == other
    return abs(one - other) <= slack


def _flat(elements: Sequence[Any]) -> list[float]:
    return [part for each in elements for part in (each if isinstance(each, list) else [each])]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 300 else f"{text[:297]}..."
