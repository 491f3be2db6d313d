"""Find the first difference between two runs of a program.

Types, shapes, integers and booleans must be equal. Floats may differ by the tolerance. If one of
two floats is nan or infinite, the other must have the same value. 0 and -0 are equal, because
Theano's optimizations treat them as equal.
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
        kind: the kind of the difference:
            "died": the worker's process ended. "hangs": the program reached the time limit.
            "refused": only the actual compilation fails. "compiled": only the expected compilation
                fails.
            "raised": only the actual call fails. "returned": only the expected call fails.
            "type", "shape", "value": an output differs.
            "changed": an input has a different value after the call.
            "overwritten": a later call changed an output.
            "shared": the final value of a shared variable differs.
            "logged": Theano logged an error.
        situation: a key of fuzz.program.SITUATIONS, or "plain" for calls of the compiled function.
        call: the number of the call; -1 if no call differs.
        output: the number of the output; -1 if no output differs.
        expected: the text of the expected result.
        actual: the text of the actual result.
        finite: false if, in each pair of elements that differ, an element is nan or infinite.
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
        """Return the properties of the difference that shrinking must preserve."""
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
        actual: the stack's answer. Compare each run in it with the oracle's plain run.
        tolerance: the permitted error of floats, divided by max(1, |finite elements|).
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
    """Return the first difference of a plain run from the values of fuzz.twins, or None.

    Skip outputs whose expected value is None: they have no twin. If ``expected`` contains a larger
    tolerance, use that tolerance.
    """
    tolerance = max(tolerance, expected.get("tolerance", 0.0))
    calls = actual.get("runs", {}).get("plain", {}).get("calls", [])
    pairs = zip(expected["runs"]["plain"]["calls"], calls)
    for call, (expected_call, actual_call) in enumerate(pairs):
        if "error" in actual_call:
            # After an exception, the values of shared variables are undefined.
            break
        outputs = zip(expected_call["outputs"], actual_call["outputs"])
        for output, (one, other) in enumerate(outputs):
            if one and (difference := _compare_encoded(one, other, tolerance)):
                kind, finite = difference
                values = _shorten(one), _shorten(other), finite
                return Difference(kind, "plain", call, output, *values)
    return None


def _compare_runs(
    expected: dict[str, Any], actual: dict[str, Any], situation: str, tolerance: float
) -> Difference | None:
    """Return the first difference of a run, or None; ``expected`` is the oracle's plain run."""
    if "died" in actual or "raised" in actual or "refused" in actual:
        (run_kind,) = (key for key in ("died", "raised", "refused") if key in actual)
        return Difference(run_kind, situation, actual=actual[run_kind], expected="a run")
    for call, (expected_call, actual_call) in enumerate(zip(expected["calls"], actual["calls"])):
        if "error" in expected_call or "error" in actual_call:
            if "error" in expected_call and "error" in actual_call:
                if expected["shared"]:
                    # Stop: it is undefined whether an update happens before the exception.
                    break
                continue
            kind = "raised" if "error" in actual_call else "returned"
            one, other = (
                result.get("error") or _shorten(result["outputs"])
                for result in (expected_call, actual_call)
            )
            return Difference(kind, situation, call, expected=one, actual=other)
        outputs = zip(expected_call["outputs"], actual_call["outputs"])
        for output, (one, other) in enumerate(outputs):
            difference = _compare_encoded(one, other, tolerance)
            if difference:
                kind, finite = difference
                return Difference(
                    kind, situation, call, output, _shorten(one), _shorten(other), finite
                )
        for kind in ("changed", "overwritten"):
            if kind in actual_call and kind not in expected_call:
                return Difference(kind, situation, call, actual=str(actual_call[kind])[:200])
    else:
        for one, other in zip(expected["shared"], actual["shared"] or ()):
            difference = _compare_encoded(one, other, tolerance)
            if difference:
                values = _shorten(one), _shorten(other), difference[1]
                return Difference("shared", situation, -1, -1, *values)
    return None


def _compare_encoded(
    expected: Sequence[Any], actual: Sequence[Any], tolerance: float
) -> tuple[str, bool] | None:
    """Compare two values in the form of fuzz.encoding: [type, shape, elements].

    Return the kind of the difference, and whether two finite elements differ; None if equal.
    """
    if expected[0] != actual[0]:
        return "type", True
    if expected[1] != actual[1]:
        return "shape", True
    if expected[0] not in FLOATS:
        return None if expected[2] == actual[2] else ("value", True)
    pairs = list(zip(_flatten(expected[2]), _flatten(actual[2])))
    sizes = [abs(one) for one, _ in pairs if math.isfinite(one)]
    slack = tolerance * max(1.0, *sizes) if sizes else tolerance
    wrong = [(one, other) for one, other in pairs if not is_close(one, other, slack)]
    if not wrong:
        return None
    return "value", any(math.isfinite(one) and math.isfinite(other) for one, other in wrong)


def is_close(one: float, other: float, slack: float) -> bool:
    """Return whether two floats differ by at most ``slack``; nan is close to nan."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    if math.isinf(one) or math.isinf(other):
        return one == other
    return abs(one - other) <= slack


def _flatten(elements: Sequence[Any]) -> list[float]:
    """Return the elements; a complex element becomes its real and its imaginary part."""
    return [
        part
        for element in elements
        for part in (element if isinstance(element, list) else [element])
    ]


def _shorten(value: Any) -> str:
    """Return at most 300 characters of a value's text."""
    text = str(value)
    return text if len(text) <= 300 else f"{text[:297]}..."
