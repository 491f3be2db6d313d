"""Measure the time of the tests of Keras, Lasagne and PyMC3 in a stack and on stock Theano.

Stock Theano runs the stacks' patched copies of the programs, because half of the programs' released
versions cannot be imported with Theano 1.0.5.
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
from builder.proof.pytest_runs import Interpreter, Run, RunnerSettings
from builder.stack import stacks

# The packages of each program. All are pure Python, so stock Theano's CPython 3.9 can import them.
PROGRAM_PACKAGES = {
    "keras": ("keras", "keras_applications", "keras_preprocessing"),
    "lasagne": ("lasagne",),
    "pymc3": ("pymc3", "arviz"),
}
# The states of the compile cache.
CACHES = ("empty", "warm")
# CPU seconds by test, environment and state of the cache, including compilers and other child
# processes.
Seconds = dict[str, dict[str, dict[str, float]]]


def measure(stack: str) -> Path:
    """Measure the tests in a stack and on stock Theano; write the report, and print it.

    Returns:
        The report's file.

    Raises:
        CommandFailed: a test fails in the stack.
        EnvironmentFailed: a program's environment is not built.
    """
    results: Seconds = {}
    file = paths.REPORTS / f"{stack}-programs.json"
    prefixes = {
        name: paths.ENVIRONMENTS / stacks.load(f"{stack}+{name}").name for name in PROGRAM_PACKAGES
    }
    for prefix in prefixes.values():
        envs.require_installed(prefix.name)
    stock = references.install_reference(PROGRAMS, Options())
    for name in PROGRAM_PACKAGES:
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


def _run(name: str, prefix: Path, program_prefix: Path, cache: str) -> dict[str, float]:
    """Run a program's tests in an environment; return the CPU seconds of each passed test.

    Args:
        name: a key of PROGRAM_PACKAGES.
        prefix: the environment that runs the tests.
        program_prefix: the stack's environment that contains the program.
        cache: one of CACHES.

    Raises:
        CommandFailed: a test fails in the stack's environment.
    """
    directory = bench.make_home(prefix.name, f"program-{name}")
    if cache == "empty":
        shutil.rmtree(directory)
    # The plugin skips tests that have an outcome in ``events``.
    for subdirectory in ("events", "lent"):
        shutil.rmtree(directory / subdirectory, ignore_errors=True)
    links = directory / "lent"
    links.mkdir(parents=True)
    if prefix == program_prefix:
        linked_packages.link_packages(links, *linked_packages.PYTEST)
    else:
        # Link the directories *.dist-info too: programs read their own version from them.
        for path in envs.find_site_packages(program_prefix).iterdir():
            if path.name.partition("-")[0].casefold() in PROGRAM_PACKAGES[name]:
                (links / path.name).symlink_to(path)
    interpreter = Interpreter(prefix / "bin" / "python", paths.ROOT, (links,))
    part = Part("cpu", "", stacks.find_test_file(name), 0, 1)
    Run(interpreter, directory, clean_environ(), 1, RunnerSettings()).run([part])
    outcomes = pytest_events.read_events(directory, part).outcomes
    failed = [f"{test}: {row.reason}" for test, row in outcomes.items() if row.outcome == "failed"]
    if failed and prefix == program_prefix:
        raise CommandFailed(
            f"{prefix}: tests of {name} failed:\n  " + "\n  ".join(failed),
            f"logs: {directory / 'logs'}",
        )
    for failure in failed:
        progress.say(f"not timed, because it failed on {PROGRAMS}: {failure}")
    return {
        test.rpartition("/")[2]: row.seconds
        for test, row in outcomes.items()
        if row.outcome == "passed"
    }


def make_table(
    results: Mapping[str, Mapping[str, Mapping[str, float]]], stack: str
) -> Sequence[Sequence[str]]:
    """Make a row for each test, with a cell for each state of the cache.

    A cell such as ``40.0 / 8.0 = 5.0x`` has the CPU seconds on stock Theano, the CPU seconds in the
    stack, and the speed-up. A test that ran only on stock Theano is ``skipped``.
    """

    def format_cell(row: Mapping[str, Mapping[str, float]], cache: str) -> str:
        own, stock = (row.get(name, {}).get(cache) for name in (stack, PROGRAMS))
        if own is None:
            return "skipped"
        if stock is None:
            return f"fails / {own:.1f}"
        return f"{stock:.1f} / {own:.1f} = {stock / max(own, 0.01):.1f}x"

    return [[test, *(format_cell(row, cache) for cache in CACHES)] for test, row in results.items()]
