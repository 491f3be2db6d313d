"""Run Theano's or a program's own tests in a stack, and find unexpected outcomes.

A conformance.toml lists the expected failures. The outcomes of the same tests on stock Theano are
the reference.
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

from builder import report
from builder.common import files, paths, processes, progress
from builder.common.errors import ConfigurationError, ConformanceFailed, UsageError
from builder.environment import envs
from builder.environment.envs import Lock
from builder.measure import references
from builder.measure.references import STOCK
from builder.options import Options
from builder.pipeline import Build
from builder.proof import (
    expected_failures,
    linked_packages,
    nvidia,
    opencl,
    pytest_events,
    pytest_results,
    pytest_runs,
)
from builder.proof.expected_failures import Expectations
from builder.proof.pytest_events import Part
from builder.proof.pytest_results import Results
from builder.proof.pytest_runs import (
    THEANO,
    THEANO_OF_2017,
    Interpreter,
    Run,
    RunnerSettings,
)
from builder.stack import recipes, stacks

SUITES = ("quick", "full")
# The names of test files: tests/.../test_*.py, or Keras' *_test.py.
TESTS = re.compile(r"tests/(.+/)?(test_[^/]*|[^/]*_test)\.py$")


@dataclass(frozen=True)
class Selection:
    """The tests to run: the ``shard``-th of ``shards`` parts of a suite.

    Attributes:
        suite: one of SUITES.
        shard: the number of the part, from 1 to ``shards``.
        shards: the number of parts.
        gpu: whether the tests run on an NVIDIA GPU.
    """

    suite: str
    shard: int
    shards: int
    gpu: bool

    def __str__(self) -> str:
        shard = "" if self.shards == 1 else f"-{self.shard}-of-{self.shards}"
        return f"{self.suite}{shard}{'-gpu' if self.gpu else ''}"


def make_selection(suite: str, shard: str, gpu: bool = False) -> Selection:
    """Make a selection from the flags of ``./invoke conformance``.

    Args:
        suite: one of SUITES.
        shard: ``I/N`` for the I-th of N parts.
        gpu: whether to run on an NVIDIA GPU.

    Raises:
        UsageError: the suite is unknown, or the shard is not I/N.
    """
    if suite not in SUITES:
        raise UsageError(f"unknown suite {suite!r}", f"choose one of: {', '.join(SUITES)}")
    part, _, parts = shard.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise UsageError(f"--shard={shard}: expected I/N, from 1/N to N/N")
    return Selection(suite, int(part), int(parts), gpu)


def check_stack(name: str, selection: Selection, jobs: int) -> None:
    """Run the tests of Theano or of a program in a stack; compare them with the expected failures.

    Args:
        name: the name of a stack. If it contains a program, the program's tests run.
        selection: the tests to run.
        jobs: the maximum number of test files that run at once; 0 means the number of CPUs.

    Raises:
        CommandFailed: another process runs the same tests in this stack.
        ConformanceFailed: an outcome deviates from the expected failures
            (``expected_failures.find_deviations``).
        UsageError: ``selection.gpu`` is set for a stack that cannot use a GPU; the stack has
            several programs; or its program has no conformance.toml.
        HostToolMissing: the stack's device is cuda, and the host has no usable GPU (with
            ``selection.gpu``), or no OpenCL device that works (without it).
    """
    device = _choose_device(name, selection)
    file = find_table(name)
    expected = expected_failures.load_expectations(file).select_device(device)
    stack = stacks.load(name)
    theano_settings = THEANO_OF_2017 if stack.has_python_2 else THEANO
    settings = RunnerSettings() if stack.programs else theano_settings
    lock = _lock_with_tests(name)
    with _lock_run(name, selection, lock.digest + file.read_text("utf-8")) as directory:
        interpreter = _install(lock, directory, nose=settings.nose)
        environ, device_name = _make_environ(device, interpreter, directory)
        results = _run(Run(interpreter, directory, environ, jobs, settings), expected, selection)
        _write_report(name, device_name, selection, results, expected)
        _remove_run(directory)
    # Theano 0.8.2 has no reference, because stock Theano is 1.0.5.
    reports = (
        [] if stack.has_python_2 else sorted(paths.REPORTS.glob(f"{STOCK}-conformance-*.json"))
    )
    reference = pytest_results.read_reports(reports)
    rows = pytest_results.compare_by_file(reference, results.outcomes)
    if rows:
        kinds = "/".join(pytest_results.KINDS)
        columns = ["", kinds, "on stock Theano", f"on {name}", f"failed on {name} only"]
        progress.print_table(columns, rows)
    deviations = expected_failures.find_deviations(expected.failures, results, reference)
    if deviations:
        raise ConformanceFailed(
            f"stack {name}: unexpected test outcomes:\n"
            + "\n".join(f"  {line}" for line in deviations),
            f"fix each failure, or list it with a reason in {file}; logs: {directory / 'logs'}",
        )
    progress.say(f"{name}: tests ({selection}) had the expected outcomes")


def find_table(name: str) -> Path:
    """Find the conformance.toml of a stack's Theano, or of its program.

    Raises:
        UsageError: the stack has several programs, or its program has no conformance.toml.
    """
    stack = stacks.load(name)
    programs = stack.name.split(stacks.WITH)[1:]
    if stack.has_python_2:
        return recipes.load_all(stack)["theano"].path / paths.CONFORMANCE.name
    if not programs:
        return paths.CONFORMANCE
    file = paths.RECIPES / programs[0] / paths.CONFORMANCE.name
    if len(programs) > 1 or not file.exists():
        programs_with_tables = [
            program
            for program in stacks.list_programs()
            if (paths.RECIPES / program / file.name).exists()
        ]
        raise UsageError(
            f"{name}: choose a stack with exactly one program that has a {file.name}",
            f"choose one of: {', '.join(programs_with_tables)}",
        )
    return file


def run_reference(selection: Selection, jobs: int) -> None:
    """Run Theano's tests on stock Theano, and write the reference report.

    Raises:
        CommandFailed: another process runs the same tests.
        UsageError: the selection is for a GPU.
    """
    if selection.gpu:
        raise UsageError("--reference: stock Theano runs on the CPU only", "omit --gpu")
    # Stock Theano runs the configurations of the CPU stacks.
    expected = expected_failures.load_expectations(paths.CONFORMANCE).select_device("cpu")
    interpreter = _make_interpreter(references.install_reference(STOCK, Options()))
    with _lock_run(STOCK, selection, str(interpreter)) as directory:
        results = _run(
            Run(interpreter, directory, processes.clean_environ(), jobs), expected, selection
        )
        _write_report(STOCK, "cpu", selection, results, replace(expected, failures=()))
        _remove_run(directory)


def _choose_device(name: str, selection: Selection) -> str:
    """Return the device on which a stack's tests run: ``cpu``, ``opencl`` or ``cuda``."""
    device = stacks.load(name).device
    if selection.gpu and device != "cuda":
        raise UsageError(f"--gpu: the stack {name} cannot use a GPU", "add --stack=cuda")
    return "opencl" if device == "cuda" and not selection.gpu else device


def _lock_with_tests(name: str) -> Lock:
    """Resolve a stack with the test packages of its recipes, such as ``theano-tests``."""
    build = Build.create(name, Options())
    built = build.build_packages()
    tests = sorted(package.name for package in built if package.name.endswith("-tests"))
    stack = replace(build.stack, programs=(*build.stack.programs, *tests))
    return Build(stack, build.plan, build.options).resolve(built)


@contextlib.contextmanager
def _lock_run(name: str, selection: Selection, subject: str) -> Iterator[Path]:
    """Lock the directory of a run, and yield it.

    The directory keeps the files of an interrupted run if that run had the same inputs.

    Args:
        name: the environment under test.
        selection: the tests to run.
        subject: text that identifies the environment and the expected failures.

    Raises:
        CommandFailed: another process has locked the directory.
    """
    directory = paths.TEST_RUNS / f"{name}-{selection}"
    with files.lock_directory(
        directory,
        f"another process runs the tests ({selection}) on {name} in {directory}",
        "wait until it ends, or choose another suite or shard",
    ):
        _reset_run(directory, subject)
        yield directory


def _reset_run(directory: Path, subject: str) -> None:
    """Empty the directory of a run, unless its files come from a run with the same inputs."""
    files = [
        paths.CONFORMANCE,
        pytest_runs.CONFTEST,
        *sorted(pytest_runs.PLUGIN.parent.glob("*.py")),
    ]
    inputs = [subject.encode(), *(file.read_bytes() for file in files)]
    mark = directory / hashlib.sha256(b"".join(inputs)).hexdigest()
    if not mark.exists():
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        mark.touch()


def _install(lock: Lock, directory: Path, *, nose: bool) -> Interpreter:
    """Install an environment for the run, so that tests cannot change the stack's environment."""
    prefix, links = directory / "environment", directory / "lent"
    # The links are created last: if they exist, the environment is complete.
    if not links.exists():
        shutil.rmtree(prefix, ignore_errors=True)
        prefix.mkdir()
        envs.install_packages(lock.files, prefix, str(prefix))
        links.mkdir()
        if nose:
            linked_packages.unpack_nose(links)
        else:
            linked_packages.link_packages(links, *linked_packages.PYTEST)
    return _make_interpreter(prefix, links)


def _make_interpreter(prefix: Path, *path: Path) -> Interpreter:
    python = prefix / "bin" / "python"
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Interpreter(python, Path(processes.run([python, "-c", query]).output.strip()), path)


def make_parts(expected: Expectations, files: Sequence[str], selection: Selection) -> list[Part]:
    """Make the parts of test files to run, the longest part first.

    Args:
        expected: the configurations, and the durations of files.
        files: the paths of all test files, relative to site-packages.
        selection: the tests to run.

    Raises:
        ConfigurationError: a pattern of a configuration matches no file.
    """
    test_parts = []
    for name, configuration in expected.configurations.items():
        for pattern in configuration.files:
            matching = sorted(fnmatch.filter(files, pattern))
            if not matching:
                raise ConfigurationError(f"configuration {name}: no file matches {pattern}")
            for file in matching:
                step = expected.compute_step(file) if selection.suite == "quick" else 1
                first = (selection.shard - 1) * step
                test_parts.append(
                    Part(name, configuration.flags, file, first, step * selection.shards)
                )
    return sorted(test_parts, key=lambda part: -expected.seconds.get(part.file, 0) / part.step)


def _make_environ(
    device: str, interpreter: Interpreter, directory: Path
) -> tuple[dict[str, str], str]:
    """Return the environment variables of tests on a device, and the device's name."""
    environ = processes.clean_environ()
    if device == "opencl":
        environ |= opencl.make_environ(directory / "opencl")
        opencl.check_device(interpreter.python, environ)
    elif device == "cuda":
        environ |= nvidia.ENVIRON
        device = nvidia.find_gpu(interpreter.python, environ)
    return environ, device


def _run(tests: Run, expected: Expectations, selection: Selection) -> Results:
    """Run the selected tests in all configurations; return the results."""
    site = tests.interpreter.site_packages
    patterns = [pattern for row in expected.configurations.values() for pattern in row.files]
    packages = {pattern.partition("/")[0] for pattern in patterns}
    files = [
        str(file.relative_to(site))
        for package in sorted(packages)
        for file in site.glob(f"{package}/**/*.py")
        if TESTS.search(str(file))
    ]
    test_parts = make_parts(expected, files, selection)
    tests.run(test_parts)
    return pytest_events.collect_results(tests.directory, test_parts)


def _write_report(
    name: str, device: str, selection: Selection, results: Results, expected: Expectations
) -> None:
    """Write the report; print the reasons of skipped tests, and the counts."""
    counts = pytest_results.count_outcomes(
        results, expected_failures.index_failures(expected.failures)
    )
    file = paths.REPORTS / f"{name}-conformance-{selection}.json"
    document = {
        "schema_version": report.SCHEMA_VERSION,
        "environment": name,
        "device": device,
        "suite": str(selection),
        "counts": counts,
        "cpu_seconds": round(sum(outcome.seconds for outcome in results.outcomes.values())),
        **pytest_results.make_document(results),
    }
    report.write(document, file)
    rows = [
        [str(count), reason]
        for reason, count in pytest_results.count_skip_reasons(results.outcomes)
    ]
    progress.print_table(["skipped", "reason"], rows)
    progress.say(f"{name}: {', '.join(f'{count} {kind}' for kind, count in counts.items())}")
    progress.say(f"report: {file}")


def _remove_run(directory: Path) -> None:
    """Remove all files of a run except its logs; the next run starts from the beginning."""
    for path in directory.iterdir():
        if path.name != "logs":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
