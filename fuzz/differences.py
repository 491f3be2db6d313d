"""Find the first difference between two runs of a program.

Types, shapes, integers and booleans must be equal. Floats may differ by a relative error; both must
be nan or infinite together. 0 and -0 are equal, because Theano's optimizations treat them as equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

FLOATS = ("float16", "float32", "float64", "complex64", "complex128")


@dataclass(frozen=True)
class Difference:
    """The first difference between a run and the expected run.

    Args:
        kind: died, hangs, refused, compiled, raised, returned, type, shape, value, changed (an
            input), overwritten (an earlier result), shared or logged (an error that Theano logs).
        situation: one of fuzz.program.SITUATIONS, or "plain".
        call: the number of the call; -1 if no call differs.
        output: the number of the output; -1 if no output differs.
        expected: a text of the expected result.
        actual: a text of the actual result.
        finite: whether two elements that differ are both finite.
    """

    kind: str
    situation: str
    call: int = -1
    output: int = -1
    expected: str = ""
    actual: str = ""
    finite: bool = True

    @property
    def signature(self) -> tuple[str, bool, str]:
        """Return the properties that the difference of a smaller program must share."""
        text = self.expected if self.kind in ("returned", "compiled") else self.actual
        named = self.kind in ("returned", "compiled", "raised", "refused", "logged")
        return self.kind, self.finite, text.partition(":")[0] if named else ""

    def __str__(self) -> str:
        position = f" in call {self.call + 1}" if self.call >= 0 else ""
        position += f", output {self.output + 1}" if self.output >= 0 else ""
        values = f": {self.actual}, not {self.expected}" if self.expected or self.actual else ""
        return f"{self.kind} ({self.situation}{position}){values}"


def compare(
    expected: dict[str, Any], actual: dict[str, Any], tolerance: float
) -> Difference | None:
    """Return the first difference between two workers' answers; None if the answers are equal.

    Args:
        expected: the oracle's answer, which has only a plain run.
        actual: the stack's answer; each of its runs is compared with the oracle's plain run.
        tolerance: the relative error of floats.
    """
    if "died" in expected or ("refused" in expected and "refused" in actual):
        return None
    if "died" in actual:
        kind = "hangs" if actual["died"] == "hangs" else "died"
        return Difference(kind, "plain", actual=actual["died"])
    if "refused" in expected or "refused" in actual:
        kind = "refused" if "refused" in actual else "compiled"
        reasons = [answer.get("refused", "a function") for answer in (expected, actual)]
        return Difference(kind, "plain", expected=reasons[0], actual=reasons[1])
    plain = expected["runs"]["plain"]
    for situation, run in actual["runs"].items():
        difference = _compare_runs(plain, run, situation, tolerance)
        if difference:
            return difference
    if logged := [line for line in actual.get("logged", []) if line not in expected["logged"]]:
        return Difference("logged", "plain", actual=logged[0])
    return None


def compare_values(
    expected: dict[str, Any], actual: dict[str, Any], tolerance: float
) -> Difference | None:
    """Return the first difference of a plain run from the oracle's values; skip values of None.

    ``expected`` may contain a larger tolerance.
    """
    tolerance = max(tolerance, expected.get("tolerance", 0.0))
    calls = actual.get("runs", {}).get("plain", {}).get("calls", [])
    for call, (old, new) in enumerate(zip(expected["runs"]["plain"]["calls"], calls)):
        if "error" in new:
            # After an exception, the values of shared variables are undefined.
            break
        for output, (one, other) in enumerate(zip(old["outputs"], new["outputs"])):
            if one and (difference := _compare_encoded(one, other, tolerance)):
                kind, finite = difference
                values = _shorten(one), _shorten(other), finite
                return Difference(kind, "plain", call, output, *values)
    return None


def _compare_runs(
    expected: dict[str, Any], actual: dict[str, Any], situation: str, tolerance: float
) -> Difference | None:
    if "died" in actual or "raised" in actual or "refused" in actual:
        (ended,) = (key for key in ("died", "raised", "refused") if key in actual)
        return Difference(ended, situation, actual=actual[ended], expected="a run")
    for call, (old, new) in enumerate(zip(expected["calls"], actual["calls"])):
        if "error" in old or "error" in new:
            if "error" in old and "error" in new:
                if expected["shared"]:
                    # An update may or may not happen before the exception.
                    break
                continue
            kind = "raised" if "error" in new else "returned"
            one, other = (
                call_result.get("error") or _shorten(call_result["outputs"])
                for call_result in (old, new)
            )
            return Difference(kind, situation, call, expected=one, actual=other)
        for output, (one, other) in enumerate(zip(old["outputs"], new["outputs"])):
            difference = _compare_encoded(one, other, tolerance)
            if difference:
                kind, finite = difference
                return Difference(
                    kind, situation, call, output, _shorten(one), _shorten(other), finite
                )
        for kind in ("changed", "overwritten"):
            if kind in new and kind not in old:
                return Difference(kind, situation, call, actual=str(new[kind])[:200])
    else:
        for one, other in zip(expected["shared"], actual["shared"] or ()):
            difference = _compare_encoded(one, other, tolerance)
            if difference:
                values = _shorten(one), _shorten(other), difference[1]
                return Difference("shared", situation, -1, -1, *values)
    return None


def _compare_encoded(
    old: Sequence[Any], new: Sequence[Any], tolerance: float
) -> tuple[str, bool] | None:
    """Return the kind of the difference, and whether two finite elements differ; None if equal."""
    if old[0] != new[0]:
        return "type", True
    if old[1] != new[1]:
        return "shape", True
    if old[0] not in FLOATS:
        return None if old[2] == new[2] else ("value", True)
    pairs = list(zip(_flatten(old[2]), _flatten(new[2])))
    sizes = [abs(one) for one, _ in pairs if math.isfinite(one)]
    slack = tolerance * max(1.0, *sizes) if sizes else tolerance
    wrong = [(one, other) for one, other in pairs if not is_close(one, other, slack)]
    if not wrong:
        return None
    return "value", any(math.isfinite(one) and math.isfinite(other) for one, other in wrong)


def is_close(one: float, other: float, slack: float) -> bool:
    """Return whether two floats differ by at most ``slack``; nan equals nan."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if math.isinf(one) or math.isinf(other):
        return one == other
    return abs(one - other) <= slack


def _flatten(elements: Sequence[Any]) -> list[float]:
    return [
        part
        for element in elements
        for part in (element if isinstance(element, list) else [element])
    ]


def _shorten(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 300 else f"{text[:297]}..."
