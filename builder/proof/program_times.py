"""The acceptance tests of programs, timed beside stock Theano: the same tests, in turns.

Stock Theano is lent the programs' own code as stacks have it, patched: as released, half of them
import on no Theano of today.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from builder import report
from builder.common import paths, progress
from builder.common.errors import CommandFailed
from builder.common.processes import clean_environ
from builder.environment import envs
from builder.measure import bench, references
from builder.measure.references import PROGRAMS
from builder.pipeline import Options
from builder.proof import lent_packages, pytest_events
from builder.proof.pytest_events import Part
from builder.proof.pytest_runs import Interpreter, Manner, Run
from builder.stack import stacks

# What is timed, and the packages of it that run on any Python.
LENT = {
    "keras": ("keras", "keras_applications", "keras_preprocessing"),
    "lasagne": ("lasagne",),
    "pymc3": ("pymc3", "arviz"),
}
CACHES = ("empty", "warm")
# CPU seconds, those of compilers and of other processes included.
Seconds = dict[str, dict[str, dict[str, float]]]


def measure(stack: str) -> Path:
    """Time a stack's programs and stock Theano's; write the report, and print it.

    Raises:
        CommandFailed: a test fails in the stack.
        EnvironmentFailed: a program's environment is not built.
    """
    found: Seconds = {}
    file = paths.REPORTS / f"{stack}-programs.json"
    prefixes = {name: paths.ENVIRONMENTS / stacks.load(f"{stack}+{name}").name for name in LENT}
    for prefix in prefixes.values():
        envs.require(prefix.name)
    stock = references.create(PROGRAMS, Options())
    for name in LENT:
        for cache in CACHES:
            for prefix in (stock, prefixes[name]):
                side = PROGRAMS if prefix is stock else stack
                seconds = _run(name, prefix, prefixes[name], cache)
                for test, taken in seconds.items():
                    found.setdefault(test, {}).setdefault(side, {})[cache] = taken
                progress.say(f"{name}, cache {cache}, {side}: {sum(seconds.values()):.0f} s")
        report.write({**bench.document(), "seconds": found, **bench.circumstances()}, file)
    progress.table(["CPU s", *CACHES], table(found, stack))
    progress.say(str(file))
    return file


def _run(name: str, prefix: Path, lender: Path, cache: str) -> dict[str, float]:
    """The CPU seconds of each of a program's tests, in the environment at ``prefix``."""
    directory = bench.home(prefix.name, f"program-{name}")
    if cache == "empty":
        shutil.rmtree(directory)
    # The plugin runs no test that has an outcome already.
    for left in ("events", "lent"):
        shutil.rmtree(directory / left, ignore_errors=True)
    lent = directory / "lent"
    lent.mkdir(parents=True)
    if prefix == lender:
        lent_packages.lend(lent, *lent_packages.PYTEST)
    else:
        # With what pip knows of it: programs ask for their own version.
        for path in envs.site_packages(lender).iterdir():
            if path.name.partition("-")[0].casefold() in LENT[name]:
                (lent / path.name).symlink_to(path)
    interpreter = Interpreter(prefix / "bin" / "python", paths.ROOT, (lent,))
    part = Part("cpu", "", stacks.tests(name), 0, 1)
    Run(interpreter, directory, clean_environ(), 1, Manner()).run([part])
    outcomes = pytest_events.read(directory, part).outcomes
    failed = [f"{test}: {row.reason}" for test, row in outcomes.items() if row.reason]
    if failed and prefix == lender:
        raise CommandFailed(
            f"{prefix}: tests of {name} failed:\n  " + "\n  ".join(failed),
            f"logs: {directory / 'logs'}",
        )
    for each in failed:
        progress.say(f"on {PROGRAMS}, which has no time of it: {each}")
    return {
        test.rpartition("/")[2]: row.seconds for test, row in outcomes.items() if not row.reason
    }


def table(
    found: Mapping[str, Mapping[str, Mapping[str, float]]], stack: str
) -> Sequence[Sequence[str]]:
    """A row for each test: stock Theano's time, the stack's, and how many times as fast that is."""

    def cell(row: Mapping[str, Mapping[str, float]], cache: str) -> str:
        own, stock = row[stack][cache], row.get(PROGRAMS, {}).get(cache)
        if stock is None:
            return f"fails / {own:.1f}"
        return f"{stock:.1f} / {own:.1f} = {stock / max(own, 0.01):.1f}x"

    return [[test, *(cell(row, cache) for cache in CACHES)] for test, row in found.items()]
