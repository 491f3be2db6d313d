"""Theano's own tests judge a stack's Theano; the same tests on stock Theano are the reference.

A program's own tests judge what is installed beside a stack.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from builder import pipeline, report
from builder.common import locks, paths, processes, progress
from builder.common.errors import ConfigurationError, ConformanceFailed, UsageError
from builder.environment import envs
from builder.environment.envs import Lock
from builder.measure import references
from builder.measure.references import STOCK
from builder.proof import (
    expected_failures,
    lent_packages,
    nvidia,
    opencl,
    pytest_events,
    pytest_results,
    pytest_runs,
)
from builder.proof.expected_failures import Expectations
from builder.proof.pytest_events import Part
from builder.proof.pytest_results import Results
from builder.proof.pytest_runs import THEANO, THEANO_OF_2017, Interpreter, Manner, Run
from builder.stack import recipes, stacks

SUITES = ("quick", "full")
# What tests are in: test_*.py, or as Keras names them, below a folder.
TESTS = re.compile(r"tests/(.+/)?(test_[^/]*|[^/]*_test)\.py$")


@dataclass(frozen=True)
class Selection:
    """What to run: of a suite's tests the ``shard``-th of ``shards`` parts, on a GPU or not."""

    suite: str
    shard: int
    shards: int
    gpu: bool

    def __str__(self) -> str:
        shard = "" if self.shards == 1 else f"-{self.shard}-of-{self.shards}"
        return f"{self.suite}{shard}{'-gpu' if self.gpu else ''}"


def select(suite: str, shard: str, gpu: bool = False) -> Selection:
    """A selection from its flags.

    Raises:
        UsageError: there is no such suite, or the shard is not I/N.
    """
    if suite not in SUITES:
        raise UsageError(f"unknown suite {suite!r}", f"choose one of: {', '.join(SUITES)}")
    part, _, parts = shard.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise UsageError(f"--shard={shard}: expected I/N, from 1/N to N/N")
    return Selection(suite, int(part), int(parts), gpu)


def judge(name: str, selection: Selection, jobs: int) -> None:
    """Run Theano's tests in a stack, or a program's, and hold them against what is expected.

    Raises:
        CommandFailed: another process runs the same tests in this stack.
        ConformanceFailed: a test failed that is not listed, or one passed that is.
        UsageError: a GPU is asked for, of a stack that has none; or it is of several programs, or
            of one whose tests are not known.
        HostToolMissing: the host has not got the device that the stack computes on.
    """
    device = _device(name, selection)
    file = table(name)
    expected = expected_failures.load(file).on(device)
    stack = stacks.load(name)
    manner = Manner() if stack.programs else THEANO_OF_2017 if stack.old else THEANO
    lock = _lock(name)
    with _directory(name, selection, lock.digest + file.read_text("utf-8")) as directory:
        interpreter = _install(lock, directory, nose=manner.nose)
        environ, device_name = _environ(device, interpreter, directory)
        results = _run(Run(interpreter, directory, environ, jobs, manner), expected, selection)
        _report(name, device_name, selection, results, expected)
        _end(directory)
    # Stock Theano is 1.0.5.
    reports = [] if stack.old else sorted(paths.REPORTS.glob(f"{STOCK}-conformance-*.json"))
    reference = pytest_results.read(reports)
    rows = pytest_results.side_by_side(reference, results.outcomes)
    if rows:
        kinds = "/".join(pytest_results.KINDS)
        columns = ["", kinds, "on stock Theano", f"on {name}", f"failed on {name} only"]
        progress.table(columns, rows)
    found = expected_failures.complaints(expected.failures, results, reference)
    if found:
        raise ConformanceFailed(
            f"stack {name}: tests did not end as expected:\n"
            + "\n".join(f"  {line}" for line in found),
            f"mend it, or list the failure and its reason in {file}; logs: {directory / 'logs'}",
        )
    progress.say(f"{name}: tests ({selection}) ended as expected")


def table(name: str) -> Path:
    """What is expected of the tests of a stack's Theano, or of the one program beside it.

    Raises:
        UsageError: there are several programs, or nothing is known of its tests.
    """
    stack = stacks.load(name)
    programs = stack.name.split(stacks.WITH)[1:]
    if stack.old:
        return recipes.load_all(stack)["theano"].path / paths.CONFORMANCE.name
    if not programs:
        return paths.CONFORMANCE
    file = paths.RECIPES / programs[0] / paths.CONFORMANCE.name
    if len(programs) > 1 or not file.exists():
        tabled = [each for each in stacks.programs() if (paths.RECIPES / each / file.name).exists()]
        raise UsageError(
            f"{name}: tests are run of one program at a time, of those whose tests are known",
            f"choose one of: {', '.join(tabled)}",
        )
    return file


def refer(selection: Selection, jobs: int) -> None:
    """Run the same tests on stock Theano, and keep how they end as the reference.

    Raises:
        CommandFailed: another process does so.
        UsageError: it is to be run on a GPU.
    """
    if selection.gpu:
        raise UsageError("--reference: stock Theano is run on the CPU", "leave out --gpu")
    # Stock Theano is run as the stacks without a GPU are.
    expected = expected_failures.load(paths.CONFORMANCE).on("cpu")
    interpreter = _interpreter(references.create(STOCK, pipeline.Options()))
    with _directory(STOCK, selection, str(interpreter)) as directory:
        results = _run(
            Run(interpreter, directory, processes.clean_environ(), jobs), expected, selection
        )
        _report(STOCK, "cpu", selection, results, replace(expected, failures=()))
        _end(directory)


def _device(name: str, selection: Selection) -> str:
    """What a stack's tests compute on, as the table names it."""
    device = stacks.load(name).device
    if selection.gpu and device != "cuda":
        raise UsageError(f"--gpu: the stack {name} knows no GPU", "add --stack=cuda")
    return "opencl" if device == "cuda" and not selection.gpu else device


def _lock(name: str) -> Lock:
    """A stack's lock with the packages of tests: Theano's, and pygpu's where it is in the stack."""
    planned, built = pipeline.packages(name, pipeline.Options())
    tests = sorted(package.name for package in built if package.name.endswith("-tests"))
    stack = replace(planned.stack, programs=(*planned.stack.programs, *tests))
    return pipeline.resolve(replace(planned, stack=stack), built)


@contextlib.contextmanager
def _directory(name: str, selection: Selection, subject: str) -> Iterator[Path]:
    """The directory of a run, which no other run has meanwhile.

    It holds what an interrupted run of the same inputs left.
    """
    directory = paths.TEST_RUNS / f"{name}-{selection}"
    with locks.alone(
        directory,
        f"tests ({selection}) run on {name} already, in {directory}",
        "wait until they have ended, or choose another suite or shard",
    ):
        _begin(directory, subject)
        yield directory


def _begin(directory: Path, subject: str) -> None:
    """Remove what a run of other inputs left."""
    files = pytest_runs.PLUGIN, pytest_runs.NOSE, pytest_runs.CONFTEST, paths.CONFORMANCE
    inputs = [subject.encode(), *(file.read_bytes() for file in files)]
    mark = directory / hashlib.sha256(b"".join(inputs)).hexdigest()
    if not mark.exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        mark.touch()


def _install(lock: Lock, directory: Path, *, nose: bool) -> Interpreter:
    """An environment of its own, so that the stack's stays as it was verified."""
    prefix, lent = directory / "environment", directory / "lent"
    if not lent.exists():
        shutil.rmtree(prefix, ignore_errors=True)
        prefix.mkdir()
        envs.install(lock.files, prefix, str(prefix))
        lent.mkdir()
        if nose:
            lent_packages.lend_nose(lent)
        else:
            lent_packages.lend(lent, *lent_packages.PYTEST)
    return _interpreter(prefix, lent)


def _interpreter(prefix: Path, *path: Path) -> Interpreter:
    python = prefix / "bin" / "python"
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Interpreter(python, Path(processes.run([python, "-c", query]).output.strip()), path)


def parts(expected: Expectations, files: Sequence[str], selection: Selection) -> list[Part]:
    """What to run of ``files``, the longest first.

    Raises:
        ConfigurationError: a configuration names a file that is not among them.
    """
    found = []
    for name, configuration in expected.configurations.items():
        for pattern in configuration.files:
            matching = sorted(fnmatch.filter(files, pattern))
            if not matching:
                raise ConfigurationError(f"configuration {name}: no file is {pattern}")
            for file in matching:
                step = expected.step(file) if selection.suite == "quick" else 1
                first = (selection.shard - 1) * step
                found.append(Part(name, configuration.flags, file, first, step * selection.shards))
    return sorted(found, key=lambda part: -expected.seconds.get(part.file, 0) / part.step)


def _environ(device: str, interpreter: Interpreter, directory: Path) -> tuple[dict[str, str], str]:
    """Environment variables of tests that compute on a device, and its name."""
    environ = processes.clean_environ()
    if device == "opencl":
        environ |= opencl.environ(directory / "opencl")
        opencl.probe(interpreter.python, environ)
    elif device == "cuda":
        environ |= nvidia.ENVIRON
        device = nvidia.probe(interpreter.python, environ)
    return environ, device


def _run(tests: Run, expected: Expectations, selection: Selection) -> Results:
    site = tests.interpreter.site_packages
    patterns = [pattern for row in expected.configurations.values() for pattern in row.files]
    packages = {pattern.partition("/")[0] for pattern in patterns}
    files = [
        str(file.relative_to(site))
        for package in sorted(packages)
        for file in site.glob(f"{package}/**/*.py")
        if TESTS.search(str(file))
    ]
    wanted = parts(expected, files, selection)
    tests.run(wanted)
    return pytest_events.results(tests.directory, wanted)


def _report(
    name: str, device: str, selection: Selection, results: Results, expected: Expectations
) -> None:
    """Write the report, and show its counts."""
    counts = pytest_results.counts(results, expected_failures.listed(expected.failures))
    file = paths.REPORTS / f"{name}-conformance-{selection}.json"
    document = {
        "schema_version": report.SCHEMA_VERSION,
        "environment": name,
        "device": device,
        "suite": str(selection),
        "counts": counts,
        "cpu_seconds": round(sum(outcome.seconds for outcome in results.outcomes.values())),
        **pytest_results.document(results),
    }
    report.write(document, file)
    rows = [[str(count), reason] for reason, count in pytest_results.reasons(results.outcomes)]
    progress.table(["skipped", "because"], rows)
    progress.say(f"{name}: {', '.join(f'{count} {kind}' for kind, count in counts.items())}")
    progress.say(f"report: {file}")


def _end(directory: Path) -> None:
    """Keep nothing of a run but its logs; the next one starts anew."""
    for rest in directory.iterdir():
        if rest.name != "logs":
            shutil.rmtree(rest) if rest.is_dir() else rest.unlink()
