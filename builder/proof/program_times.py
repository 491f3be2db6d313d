"""Measure the time of the tests of Keras, Lasagne and PyMC3 in a stack and on stock Theano.

Stock Theano runs the stacks' patched copies of the programs, because half of the released versions
cannot be imported with Theano 1.0.5.
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
from builder.options import Options
from builder.proof import linked_packages, pytest_events
from builder.proof.pytest_events import Part
from builder.proof.pytest_runs import Interpreter, Manner, Run
from builder.stack import stacks

# The programs, and their packages that run on any Python.
LENT = {
    "keras": ("keras", "keras_applications", "keras_preprocessing"),
    "lasagne": ("lasagne",),
    "pymc3": ("pymc3", "arviz"),
}
CACHES = ("empty", "warm")
# CPU seconds by test, environment and cache, including compilers and other child processes.
Seconds = dict[str, dict[str, dict[str, float]]]


def measure(stack: str) -> Path:
    """Measure the tests in a stack and on stock Theano; write the report, and print it.

    Raises:
        CommandFailed: a test fails in the stack.
        EnvironmentFailed: a program's environment is not built.
    """
    results: Seconds = {}
    file = paths.REPORTS / f"{stack}-programs.json"
    prefixes = {name: paths.ENVIRONMENTS / stacks.load(f"{stack}+{name}").name for name in LENT}
    for prefix in prefixes.values():
        envs.require_installed(prefix.name)
    stock = references.install_reference(PROGRAMS, Options())
    for name in LENT:
        for cache in CACHES:
            for prefix in (stock, prefixes[name]):
                side = PROGRAMS if prefix is stock else stack
                seconds = _run(name, prefix, prefixes[name], cache)
                for test, cpu_seconds in seconds.items():
                    results.setdefault(test, {}).setdefault(side, {})[cache] = cpu_seconds
                progress.say(f"{name}, cache {cache}, {side}: {sum(seconds.values()):.0f} s")
        report.write(
            {**bench.start_document(), "seconds": results, **bench.describe_circumstances()}, file
        )
    progress.print_table(["CPU s", *CACHES], make_table(results, stack))
    progress.say(str(file))
    return file


def _run(name: str, prefix: Path, lender: Path, cache: str) -> dict[str, float]:
    """Run a program's tests in the environment at ``prefix``; return the CPU seconds of each."""
    directory = bench.make_home(prefix.name, f"program-{name}")
    if cache == "empty":
        shutil.rmtree(directory)
    # The plugin does not run tests that have an outcome already.
    for subdirectory in ("events", "lent"):
        shutil.rmtree(directory / subdirectory, ignore_errors=True)
    lent = directory / "lent"
    lent.mkdir(parents=True)
    if prefix == lender:
        linked_packages.link_packages(lent, *linked_packages.PYTEST)
    else:
        # Link pip's metadata too: programs read their own version from it.
        for path in envs.find_site_packages(lender).iterdir():
            if path.name.partition("-")[0].casefold() in LENT[name]:
                (lent / path.name).symlink_to(path)
    interpreter = Interpreter(prefix / "bin" / "python", paths.ROOT, (lent,))
    part = Part("cpu", "", stacks.find_test_file(name), 0, 1)
    Run(interpreter, directory, clean_environ(), 1, Manner()).run([part])
    outcomes = pytest_events.read_events(directory, part).outcomes
    failed = [f"{test}: {row.reason}" for test, row in outcomes.items() if row.reason]
    if failed and prefix == lender:
        raise CommandFailed(
            f"{prefix}: tests of {name} failed:\n  " + "\n  ".join(failed),
            f"logs: {directory / 'logs'}",
        )
    for failure in failed:
        progress.say(f"not timed, because it failed on {PROGRAMS}: {failure}")
    return {
        test.rpartition("/")[2]: row.seconds for test, row in outcomes.items() if not row.reason
    }


def make_table(
    results: Mapping[str, Mapping[str, Mapping[str, float]]], stack: str
) -> Sequence[Sequence[str]]:
    """Make a row for each test: stock Theano's time, the stack's time, and the speed-up."""

    def cell(row: Mapping[str, Mapping[str, float]], cache: str) -> str:
        own, stock = row[stack][cache], row.get(PROGRAMS, {}).get(cache)
        if stock is None:
            return f"fails / {own:.1f}"
        return f"{stock:.1f} / {own:.1f} = {stock / max(own, 0.01):.1f}x"

    return [[test, *(cell(row, cache) for cache in CACHES)] for test, row in results.items()]
