"""Whether a program differs, asked of workers; what stock Theano makes of it; and the smallest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fuzz import comparing, known, shrinking
from fuzz.comparing import Difference
from fuzz.known import Known
from fuzz.program import Program, live

# Answers a question, as fuzz.worker does.
Ask = Callable[[dict[str, Any]], dict[str, Any]]
# In these a program is run by another worker.
ELSEWHERE = ("again", "unshipped")
# Whom a program is held against, in order.
JUDGES = UNOPTIMIZED, STOCK, NUMPY = "Theano unoptimized", "stock Theano", "NumPy"
# Programs of so few statements are small.
SMALL = 2


@dataclass(frozen=True)
class Workers:
    """Those that are asked.

    Args:
        stack: of the stack's Theano.
        elsewhere: the same in other processes, by the situation that they are.
        oracle: unoptimized, without C.
        stock: stock Theano, if it is installed.
        stock_oracle: the same, unoptimized and without C.
        numpy: of fuzz.twins, if it is asked.
    """

    stack: Ask
    elsewhere: dict[str, Ask]
    oracle: Ask
    stock: Ask | None
    stock_oracle: Ask | None
    numpy: Ask | None = None


@dataclass(frozen=True)
class Found:
    """A program that differs.

    ``alike`` says whether stock Theano does the same, None if that is unknown; ``row`` is where it
    is listed; ``judge`` is what the program was held against, and ``expected`` its answer.
    """

    program: Program
    difference: Difference
    alike: bool | None
    row: Known | None
    judge: str
    expected: dict[str, Any]

    @property
    def cause(self) -> str:
        """Whose it is, in a word."""
        if self.judge == STOCK:
            return "the stack's"
        return {True: "stock's", False: "the stack's", None: "unknown"}[self.alike]


@dataclass(frozen=True)
class Outcome:
    """What a program did: how it differed, from which judge, and what it was."""

    difference: Difference | None
    judge: str
    expected: dict[str, Any]
    found: dict[str, Any]
    refused: bool = False


def judge(program: Program, workers: Workers, last: str = NUMPY) -> Outcome:
    """Run a program, and compare with what each of JUDGES says up to the last that is wanted."""
    question = program.question("unoptimized", ())
    expected = workers.oracle(question)
    found = run(program, workers)
    difference = comparing.compare(expected, found, program.tolerance)
    outcome = Outcome(difference, UNOPTIMIZED, expected, found, "refused" in expected)
    if not difference and workers.stock_oracle and last != UNOPTIMIZED:
        stock = workers.stock_oracle(in_own_memory(question))
        difference = comparing.compare(stock, found, program.tolerance)
        outcome = replace(outcome, difference=difference, judge=STOCK, expected=stock)
    if not difference and workers.numpy and last == NUMPY:
        values = workers.numpy(program.evaluation())
        difference = comparing.compare_values(values, found, program.tolerance)
        outcome = replace(outcome, difference=difference, judge=NUMPY, expected=values)
    return outcome


def in_own_memory(question: dict[str, Any]) -> dict[str, Any]:
    """What stock Theano is asked: it reads rows that are in one place as if they were not."""
    calls = [[text.replace("repeated(", "spread(") for text in call] for call in question["calls"]]
    return {**question, "calls": calls}


def run(program: Program, workers: Workers) -> dict[str, Any]:
    """What the stack makes of a program, in all of its situations."""
    inside = [each for each in program.situations if each not in ELSEWHERE]
    found = workers.stack(program.question(program.mode, inside))
    for name in program.situations:
        if name in workers.elsewhere and "runs" in found:
            other = workers.elsewhere[name](program.question(program.mode, ()))
            found["runs"][name] = other["runs"]["plain"] if "runs" in other else other
    return found


def stock_alike(program: Program, workers: Workers, outcome: Outcome) -> bool | None:
    """Whether stock Theano, optimizing, differs from the oracle as the stack does, if known."""
    if workers.stock is None or outcome.difference is None:
        return None
    inside = [each for each in program.situations if each not in ELSEWHERE]
    stock = workers.stock(in_own_memory(program.question(program.mode, inside)))
    if stock.get("died") == "hangs":
        return None
    if outcome.difference.kind == "logged":
        return outcome.difference.found in stock.get("logged", [])
    situation = outcome.difference.situation
    if "runs" in stock and "runs" in outcome.found:
        runs = stock["runs"], outcome.found["runs"]
        plain, other = (each.get(situation, each["plain"]) for each in runs)
        if "calls" in plain and "calls" in other:
            one = {**stock, "runs": {"plain": plain}}
            two = {**outcome.found, "runs": {"plain": other}}
            return comparing.compare(one, two, program.tolerance) is None
    compare = comparing.compare_values if outcome.judge == NUMPY else comparing.compare
    again = compare(outcome.expected, stock, program.tolerance)
    return again is not None and again.kind == outcome.difference.kind


def investigate(
    program: Program, workers: Workers, table: Sequence[Known], attempts: int, seconds: float
) -> Found | None:
    """Hold a program against the oracles; the smallest that differs alike, if it does.

    Args:
        table: the differences that are known.
        attempts: how many smaller programs are tried at most.
        seconds: after so many none is tried any more.
    """
    outcome = judge(program, workers)
    if outcome.difference is None:
        return None
    wanted = outcome.difference
    smallest, last = program, outcome
    end = time.monotonic() + seconds

    def keeps(candidate: Program) -> bool:
        nonlocal smallest, last
        if time.monotonic() > end:
            return False
        now = judge(candidate, workers, outcome.judge)
        found = now.difference
        kept = found is not None and found.like == wanted.like and now.judge == outcome.judge
        if kept:
            smallest, last = candidate, now
        return kept

    def listed(alike: bool | None) -> Known | None:
        assert last.difference is not None
        return known.first(table, smallest, last.difference, alike)

    if wanted.output >= 0:
        keeps(live(replace(program, outputs=(program.outputs[wanted.output],))))
    # What is listed as it stands, and is small or says nothing of finite values, stays so.
    alike, row = None, listed(None)
    if row is not None and (not row.finite or len(smallest.statements) <= SMALL):
        alike = stock_alike(smallest, workers, last)
        row = listed(alike)
    else:
        row = None
    if row is None:
        situations = () if wanted.situation == "plain" else (wanted.situation,)
        keeps(replace(smallest, situations=situations))
        shrinking.shrink(smallest, keeps, attempts)
        alike = stock_alike(smallest, workers, last)
        row = listed(alike)
    assert last.difference is not None
    return Found(smallest, last.difference, alike, row, last.judge, last.expected)
