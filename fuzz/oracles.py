"""Compare a program's results with three oracles; shrink a program that differs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.logged_failures import get_optimizer_name
from fuzz import differences, known_differences, shrinker
from fuzz.differences import Difference
from fuzz.known_differences import KnownDifference
from fuzz.program import Program, remove_unused

# Sends a question to a worker process and returns its answer.
Ask = Callable[[dict[str, Any]], dict[str, Any]]
# Another worker runs a program in these situations.
ELSEWHERE = ("again", "unshipped")
# A program is compared with each oracle, in this order.
ORACLES = UNOPTIMIZED, STOCK, NUMPY = "Theano unoptimized", "stock Theano", "NumPy"
# Do not shrink a program of at most this many statements if a row lists its difference.
SMALL = 2


@dataclass(frozen=True)
class Workers:
    """The worker processes.

    Args:
        stack: the stack's Theano.
        elsewhere: the stack's Theano in other processes, by situation of ELSEWHERE.
        unoptimized: the stack's Theano without optimizations and C.
        stock: stock Theano; None if it is not installed.
        stock_unoptimized: stock Theano without optimizations and C.
        numpy: fuzz.twins; None to omit this oracle.
    """

    stack: Ask
    elsewhere: dict[str, Ask]
    unoptimized: Ask
    stock: Ask | None
    stock_unoptimized: Ask | None
    numpy: Ask | None = None


@dataclass(frozen=True)
class Finding:
    """A program whose result differs from an oracle's.

    Args:
        on_stock: whether stock Theano has the same difference; None if unknown.
        row: the row of known.toml that lists the difference; None if it is not listed.
        oracle: the element of ORACLES that the program differs from.
        expected: the oracle's answer.
    """

    program: Program
    difference: Difference
    on_stock: bool | None
    row: KnownDifference | None
    oracle: str
    expected: dict[str, Any]

    @property
    def cause(self) -> str:
        """Return the origin of the difference: the stack, stock Theano, or unknown."""
        if self.oracle == STOCK:
            return "the stack's"
        return {True: "stock's", False: "the stack's", None: "unknown"}[self.on_stock]


@dataclass(frozen=True)
class Outcome:
    """The difference of a program, the oracle that it differs from, and both answers."""

    difference: Difference | None
    oracle: str
    expected: dict[str, Any]
    actual: dict[str, Any]
    refused: bool = False


def compare_with_oracles(program: Program, workers: Workers, last: str = NUMPY) -> Outcome:
    """Run a program, and compare its results with each oracle up to ``last``."""
    question = program.make_question("unoptimized", ())
    expected = workers.unoptimized(question)
    actual = run(program, workers)
    difference = differences.compare(expected, actual, program.tolerance)
    outcome = Outcome(difference, UNOPTIMIZED, expected, actual, "refused" in expected)
    if not difference and workers.stock_unoptimized and last != UNOPTIMIZED:
        stock = workers.stock_unoptimized(copy_repeated_rows(question))
        difference = differences.compare(stock, actual, program.tolerance)
        outcome = replace(outcome, difference=difference, oracle=STOCK, expected=stock)
    if not difference and workers.numpy and last == NUMPY:
        values = workers.numpy(program.make_evaluation())
        difference = differences.compare_values(values, actual, program.tolerance)
        outcome = replace(outcome, difference=difference, oracle=NUMPY, expected=values)
    return outcome


def copy_repeated_rows(question: dict[str, Any]) -> dict[str, Any]:
    """Replace repeated rows by copies: stock Theano computes wrong results for repeated rows."""
    calls = [[text.replace("repeated(", "spread(") for text in call] for call in question["calls"]]
    return {**question, "calls": calls}


def run(program: Program, workers: Workers) -> dict[str, Any]:
    """Run a program on the stack, in all of its situations."""
    inside = [situation for situation in program.situations if situation not in ELSEWHERE]
    answer = workers.stack(program.make_question(program.mode, inside))
    for name in program.situations:
        if name in workers.elsewhere and "runs" in answer:
            other = workers.elsewhere[name](program.make_question(program.mode, ()))
            answer["runs"][name] = other["runs"]["plain"] if "runs" in other else other
            answer["logged"] = [*answer.get("logged", []), *other.get("logged", [])]
    return answer


def differs_on_stock(program: Program, workers: Workers, outcome: Outcome) -> bool | None:
    """Return whether stock Theano has the same difference as the stack; None if unknown."""
    if workers.stock is None or outcome.difference is None:
        return None
    inside = [name for name in program.situations if name not in ELSEWHERE]
    stock = workers.stock(copy_repeated_rows(program.make_question(program.mode, inside)))
    if stock.get("died") == "hangs":
        return None
    if outcome.difference.kind == "logged":
        failed = {get_optimizer_name(line) for line in stock.get("logged", [])}
        return get_optimizer_name(outcome.difference.actual) in failed
    situation = outcome.difference.situation
    if "runs" in stock and "runs" in outcome.actual:
        runs = stock["runs"], outcome.actual["runs"]
        plain, other = (answer_runs.get(situation, answer_runs["plain"]) for answer_runs in runs)
        if "calls" in plain and "calls" in other:
            one = {**stock, "runs": {"plain": plain}}
            two = {**outcome.actual, "runs": {"plain": other}}
            return differences.compare(one, two, program.tolerance) is None
    compare = differences.compare_values if outcome.oracle == NUMPY else differences.compare
    again = compare(outcome.expected, stock, program.tolerance)
    return again is not None and again.kind == outcome.difference.kind


def investigate(
    program: Program,
    workers: Workers,
    table: Sequence[KnownDifference],
    attempts: int,
    seconds: float,
) -> Finding | None:
    """Compare a program with the oracles; return the smallest program with the same difference.

    Return None if the program does not differ.

    Args:
        table: the rows of known.toml.
        attempts: the maximum number of smaller programs to try.
        seconds: the maximum time to try smaller programs.
    """
    outcome = compare_with_oracles(program, workers)
    if outcome.difference is None:
        return None
    wanted = outcome.difference
    smallest, last = program, outcome
    end = time.monotonic() + seconds

    def still_differs(candidate: Program) -> bool:
        nonlocal smallest, last
        if time.monotonic() > end:
            return False
        now = compare_with_oracles(candidate, workers, outcome.oracle)
        difference = now.difference
        kept = (
            difference is not None
            and difference.signature == wanted.signature
            and now.oracle == outcome.oracle
        )
        if kept:
            smallest, last = candidate, now
        return kept

    def find_row(on_stock: bool | None) -> KnownDifference | None:
        assert last.difference is not None
        return known_differences.find_row(table, smallest, last.difference, on_stock)

    if wanted.output >= 0:
        still_differs(remove_unused(replace(program, outputs=(program.outputs[wanted.output],))))
    # Do not shrink a listed difference if the program is small, or if it concerns no finite values.
    on_stock, row = None, find_row(None)
    if row is not None and (not row.finite or len(smallest.statements) <= SMALL):
        on_stock = differs_on_stock(smallest, workers, last)
        row = find_row(on_stock)
    else:
        row = None
    if row is None:
        situations = () if wanted.situation == "plain" else (wanted.situation,)
        still_differs(replace(smallest, situations=situations))
        shrinker.shrink(smallest, still_differs, attempts)
        on_stock = differs_on_stock(smallest, workers, last)
        row = find_row(on_stock)
    assert last.difference is not None
    return Finding(smallest, last.difference, on_stock, row, last.oracle, last.expected)
