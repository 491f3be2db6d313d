"""Compare a program's results with three oracles, and shrink a program whose results differ."""

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
# In these situations, a different worker process runs the program.
ELSEWHERE = ("again", "unshipped")
# The oracles, in the order of the comparisons.
ORACLES = UNOPTIMIZED, STOCK, NUMPY = "Theano unoptimized", "stock Theano", "NumPy"
# A program of at most this many statements is not shrunk if a row of known.toml lists its
# difference.
SMALL = 2


@dataclass(frozen=True)
class Workers:
    """The functions that query the worker processes.

    Args:
        stack: the stack's Theano.
        elsewhere: maps a situation of ELSEWHERE to another process with the stack's Theano.
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
    """A program whose result differs from the oracle's result.

    Args:
        on_stock: whether stock Theano has the same difference; None if unknown.
        row: the row of known.toml that lists the difference; None if it is not listed.
        oracle: an element of ORACLES, the oracle whose result differs.
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
        """Return the origin of the wrong result: "the stack's", "stock's" or "unknown"."""
        if self.oracle == STOCK:
            return "the stack's"
        return {True: "stock's", False: "the stack's", None: "unknown"}[self.on_stock]


@dataclass(frozen=True)
class Outcome:
    """The result of the comparison of a program with the oracles.

    Args:
        difference: the first difference; None if all results are equal.
        oracle: the oracle of the last comparison.
        expected: this oracle's answer.
        actual: the stack's answer.
        refused: whether Theano cannot compile the program without optimizations.
    """

    difference: Difference | None
    oracle: str
    expected: dict[str, Any]
    actual: dict[str, Any]
    refused: bool = False


def compare_with_oracles(program: Program, workers: Workers, last: str = NUMPY) -> Outcome:
    """Compare a program's results with each oracle up to ``last``, until a result differs."""
    question = program.make_question("unoptimized", ())
    expected = workers.unoptimized(question)
    actual = run_on_stack(program, workers)
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
    """Return a question in which the rows of repeated arrays are copies with their own memory.

    Stock Theano computes wrong results for arrays whose rows share memory.
    """
    calls = [[text.replace("repeated(", "spread(") for text in call] for call in question["calls"]]
    return {**question, "calls": calls}


def run_on_stack(program: Program, workers: Workers) -> dict[str, Any]:
    """Run a program on the stack, in all of its situations; return one answer with all runs."""
    local = [situation for situation in program.situations if situation not in ELSEWHERE]
    answer = workers.stack(program.make_question(program.mode, local))
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
    local = [name for name in program.situations if name not in ELSEWHERE]
    stock = workers.stock(copy_repeated_rows(program.make_question(program.mode, local)))
    if stock.get("died") == "hangs":
        return None
    if outcome.difference.kind == "logged":
        failed = {get_optimizer_name(line) for line in stock.get("logged", [])}
        return get_optimizer_name(outcome.difference.actual) in failed
    situation = outcome.difference.situation
    if "runs" in stock and "runs" in outcome.actual:
        # Stock Theano has the difference if its results equal the stack's results.
        stock_run, stack_run = (
            runs.get(situation, runs["plain"]) for runs in (stock["runs"], outcome.actual["runs"])
        )
        if "calls" in stock_run and "calls" in stack_run:
            stock_answer = {**stock, "runs": {"plain": stock_run}}
            stack_answer = {**outcome.actual, "runs": {"plain": stack_run}}
            return differences.compare(stock_answer, stack_answer, program.tolerance) is None
    compare = differences.compare_values if outcome.oracle == NUMPY else differences.compare
    difference = compare(outcome.expected, stock, program.tolerance)
    return difference is not None and difference.kind == outcome.difference.kind


def investigate(
    program: Program,
    workers: Workers,
    table: Sequence[KnownDifference],
    attempts: int,
    seconds: float,
) -> Finding | None:
    """Compare a program's results with the oracles; if they differ, shrink the program.

    Return the smallest program that has a difference of the same signature from the same oracle.
    Return None if no result differs.

    Args:
        table: the rows of known.toml.
        attempts: the maximum number of smaller programs to try.
        seconds: the maximum time to try smaller programs.
    """
    outcome = compare_with_oracles(program, workers)
    if outcome.difference is None:
        return None
    original = outcome.difference
    smallest, smallest_outcome = program, outcome
    deadline = time.monotonic() + seconds

    def still_differs(candidate: Program) -> bool:
        """Return whether a candidate has the original difference; if so, store the candidate."""
        nonlocal smallest, smallest_outcome
        if time.monotonic() > deadline:
            return False
        candidate_outcome = compare_with_oracles(candidate, workers, outcome.oracle)
        difference = candidate_outcome.difference
        differs = (
            difference is not None
            and difference.signature == original.signature
            and candidate_outcome.oracle == outcome.oracle
        )
        if differs:
            smallest, smallest_outcome = candidate, candidate_outcome
        return differs

    def find_row(on_stock: bool | None) -> KnownDifference | None:
        difference = smallest_outcome.difference
        assert difference is not None
        return known_differences.find_row(table, smallest, difference, on_stock)

    if original.output >= 0:
        outputs = (program.outputs[original.output],)
        still_differs(remove_unused(replace(program, outputs=outputs)))
    # Do not shrink a program with a listed difference if the program is small, or if the row lists
    # only elements that are nan or infinite.
    on_stock, row = None, find_row(None)
    if row is not None and (not row.finite or len(smallest.statements) <= SMALL):
        on_stock = differs_on_stock(smallest, workers, smallest_outcome)
        row = find_row(on_stock)
    else:
        row = None
    if row is None:
        situations = () if original.situation == "plain" else (original.situation,)
        still_differs(replace(smallest, situations=situations))
        shrinker.shrink(smallest, still_differs, attempts)
        on_stock = differs_on_stock(smallest, workers, smallest_outcome)
        row = find_row(on_stock)
    assert smallest_outcome.difference is not None
    return Finding(
        smallest,
        smallest_outcome.difference,
        on_stock,
        row,
        smallest_outcome.oracle,
        smallest_outcome.expected,
    )
