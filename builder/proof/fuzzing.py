"""Run random programs in a stack; compare the results with three oracles.

The oracles are the stack's Theano without optimizations, stock Theano, and NumPy.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from builder import report
from builder.common import files, paths, processes, progress
from builder.common.errors import ConfigurationError, FuzzingFailed, UsageError
from builder.environment import envs
from builder.measure import references
from builder.stack import stacks
from fuzz import generator, known_differences, oracles, program
from fuzz.known_differences import KnownDifference
from fuzz.oracles import Finding, Workers

# The list of known differences.
KNOWN = paths.ROOT / "fuzz" / "known.toml"
# To shrink a program whose results differ, the run tries at most this number of smaller programs.
ATTEMPTS = 250
# Seconds to shrink a program whose results differ. The second number applies if the last FREQUENT
# differences in the program's category were of the same kind.
SHRINK_SECONDS, FREQUENT_SHRINK_SECONDS, FREQUENT = 12, 3, 2
# A run ends after this number of unlisted differences.
ENOUGH = 40
# Seconds between progress lines.
LINE_INTERVAL = 30
# THEANO_FLAGS of a worker without shipped modules and without the cache of optimized graphs.
UNSHIPPED = "cmodule.shipped=,cache_optimizations=False"
# THEANO_FLAGS of a worker without optimizations and C code. An argument ``mode`` of theano.function
# would not suffice: the inner function of a scan takes its mode from THEANO_FLAGS.
UNOPTIMIZED = "mode=Mode,linker=py,optimizer=None"


@dataclass(frozen=True)
class Limits:
    """The limits of a run, in seconds and in number of programs; 0 means no limit."""

    seconds: int
    programs: int


def fuzz(stack: str, limits: Limits, seed: int, category_names: Sequence[str]) -> None:
    """Run random programs in a stack, and report the differences.

    Args:
        stack: the name of a built stack.
        limits: the limits of the run.
        seed: the seed of the programs. The same seed and categories give the same programs.
        category_names: categories of programs; an empty sequence for all categories.

    Raises:
        UsageError: a category is unknown, or the stack has Python 2.7.
        EnvironmentFailed: the stack is not built.
        CommandFailed: another process runs programs in the stack.
        ConfigurationError: known.toml has an invalid row.
        FuzzingFailed: a difference is not listed in known.toml.
    """
    categories = list(category_names or generator.CATEGORIES)
    if unknown := sorted(set(categories) - set(generator.CATEGORIES)):
        names = ", ".join(generator.CATEGORIES)
        raise UsageError(f"unknown category {unknown[0]!r}", f"choose among: {names}")
    name = stacks.load_with_python_3(stack, "fuzz").name
    envs.require_installed(name)
    table = load_known(KNOWN)
    counts: Counter[str] = Counter()
    differences: list[Finding] = []
    directory = paths.FUZZING / name
    message = f"another process runs random programs on {name} in {directory}"
    with (
        files.lock_directory(directory, message, "wait until it ends"),
        _start_workers(name, counts) as workers,
    ):
        began = time.monotonic()
        for candidate in _generate_programs(limits, seed, categories, began):
            counts[candidate.category] += 1
            counts["calls"] += len(candidate.calls) * (len(candidate.situations) + 1)
            frequent = _is_frequent(candidate, differences)
            shrink_seconds = FREQUENT_SHRINK_SECONDS if frequent else SHRINK_SECONDS
            if difference := oracles.investigate(
                candidate, workers, table, ATTEMPTS, shrink_seconds
            ):
                differences.append(difference)
                _print_difference(difference)
            if sum(difference.row is None for difference in differences) >= ENOUGH:
                progress.say(f"the run ends after {ENOUGH} unlisted differences")
                break
        seconds = time.monotonic() - began
    _write_report(name, seed, counts, seconds, differences)
    unlisted = [difference for difference in differences if difference.row is None]
    if unlisted:
        raise FuzzingFailed(
            f"stack {name}, seed {seed}: {len(unlisted)} unlisted differences:\n"
            + "\n".join(f"  {row.program.category}: {row.difference}" for row in unlisted),
            f"correct Theano; list a difference in {KNOWN} only if stock Theano has it too; "
            f"programs: {paths.REPORTS / f'{name}-fuzz'}",
        )


def _is_frequent(candidate: program.Program, differences: list[Finding]) -> bool:
    """Return whether the category's last FREQUENT differences have the same signature."""
    signatures = [
        row.difference.signature
        for row in differences
        if row.program.category == candidate.category
    ]
    return len(signatures) >= FREQUENT and len(set(signatures[-FREQUENT:])) == 1


def load_known(file: Path) -> tuple[KnownDifference, ...]:
    """Load the known differences from known.toml.

    Raises:
        ConfigurationError: the keys of a row are not the fields of KnownDifference, or a regular
            expression is invalid.
    """
    try:
        return known_differences.parse(files.read_toml(file))
    except ValueError as error:
        raise ConfigurationError(f"{file}: {error}") from error


def _generate_programs(
    limits: Limits, seed: int, categories: list[str], began: float
) -> Iterator[program.Program]:
    """Yield the programs of a seed, round-robin over the categories, until a limit is reached.

    Args:
        began: the value of time.monotonic() at the start of the run.
    """
    number, last_line = 0, began
    while not limits.programs or number < limits.programs:
        now = time.monotonic()
        if limits.seconds and now - began > limits.seconds:
            return
        if now - last_line > LINE_INTERVAL:
            last_line = now
            progress.say(f"{number} programs, {number / (now - began):.1f} per second")
        yield generator.generate(
            seed, categories[number % len(categories)], number // len(categories)
        )
        number += 1


@contextlib.contextmanager
def _start_workers(stack: str, counts: Counter[str]) -> Iterator[Workers]:
    """Start the worker processes as a context.

    Args:
        stack: the name of the stack.
        counts: the counts to which :func:`_count_numpy` adds "numpy requested" and
            "numpy computed".
    """
    with contextlib.ExitStack() as started:

        def start(
            environment: str, role: str, flags: str = "", module: str = "fuzz.worker"
        ) -> oracles.Ask:
            # Each stack has its own directory for stock Theano too. Otherwise a run of another
            # stack would wait for the lock of stock Theano's compiledir.
            directory = paths.FUZZING / stack / environment
            home = directory / role
            home.mkdir(parents=True, exist_ok=True)
            # The workers of an environment share a compiledir. The worker without shipped modules
            # has its own compiledir.
            parent = home if flags == UNSHIPPED else directory
            settings = [f"base_compiledir={parent / 'compiledir'}", "on_opt_error=warn", flags]
            environ = {
                **processes.clean_environ(),
                "HOME": str(home),
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": str(paths.ROOT),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONHASHSEED": "0",
                "THEANO_FLAGS": ",".join(filter(None, settings)),
            }
            worker = started.enter_context(
                processes.Conversation(
                    [envs.get_python_path(environment), "-m", module], env=environ, cwd=home
                )
            )
            return lambda question: dict(json.loads(worker.ask(json.dumps(question))))

        stock = stock_oracle = None
        if (paths.ENVIRONMENTS / references.STOCK / references.MARK).exists():
            stock = start(references.STOCK, "stock")
            stock_oracle = start(references.STOCK, "oracle", UNOPTIMIZED)
        else:
            progress.say(
                "not compared with stock Theano: it is not installed (./invoke references)"
            )
        yield Workers(
            stack=start(stack, "stack"),
            elsewhere={
                "again": start(stack, "again"),
                "unshipped": start(stack, "unshipped", UNSHIPPED),
            },
            unoptimized=start(stack, "oracle", UNOPTIMIZED),
            stock=stock,
            stock_unoptimized=stock_oracle,
            numpy=_count_numpy(start(stack, "numpy", module="fuzz.twins"), counts),
        )


def _count_numpy(ask: oracles.Ask, counts: Counter[str]) -> oracles.Ask:
    """Return a function that queries the oracle NumPy, and counts outputs.

    "numpy requested" counts the requested outputs, and "numpy computed" the outputs that NumPy
    computed.
    """

    def ask_and_count(question: dict[str, Any]) -> dict[str, Any]:
        answer = ask(question)
        counts["numpy requested"] += len(question["outputs"]) * len(question["calls"])
        counts["numpy computed"] += sum(
            value is not None
            for call in answer["runs"]["plain"]["calls"]
            for value in call["outputs"]
        )
        return answer

    return ask_and_count


def _print_difference(finding: Finding) -> None:
    reason = f" (listed: {finding.row.reason})" if finding.row else ""
    progress.say(f"{finding.program.category}: {finding.difference}; {finding.cause}{reason}")
    if finding.row is None:
        progress.say(_make_script(finding))


def _make_script(finding: Finding) -> str:
    """Make a Python script that runs the program and compares its results with the oracle's."""
    difference = finding.difference
    comment = (
        f"{difference.kind} ({difference.situation}), compared with {finding.oracle}; "
        f"cause: {finding.cause}."
    )
    return program.make_script(finding.program, difference.kind, _make_assertions(finding), comment)


def _make_assertions(finding: Finding) -> list[str]:
    """Make the lines of a script that fail if the program's results differ from the oracle's.

    If the oracle has no output to compare with, for example because it raised an error, the lines
    are comments only.
    """
    difference = finding.difference
    comments = [
        f"# {line[:300]}"
        for line in (f"actual: {difference.actual}", f"expected: {difference.expected}")
    ]
    answers = finding.expected.get("runs", {}).get("plain", {}).get("calls", [])
    if difference.call < 0 or "outputs" not in answers[difference.call]:
        return comments
    number = max(difference.output, 0)
    dtype, shape, elements = answers[difference.call]["outputs"][number]
    # A complex element is a list in JSON.
    values = [tuple(value) if isinstance(value, list) else value for value in elements]
    source = program.Value(dtype, tuple(shape), tuple(values)).format_source()
    tolerance = finding.program.tolerance if "float" in dtype or "complex" in dtype else 0
    return [
        *comments,
        f"expected = {source}",
        f"result = np.asarray(results[{difference.call}][{number}])",
        "assert (result.dtype, result.shape) == (expected.dtype, expected.shape)",
        f"np.testing.assert_allclose(result, expected, {tolerance}, {tolerance})",
    ]


def _write_report(
    stack: str, seed: int, counts: Counter[str], seconds: float, differences: list[Finding]
) -> None:
    """Write the report, and a script for each unlisted difference; print the counts."""
    directory = paths.REPORTS / f"{stack}-fuzz"
    directory.mkdir(parents=True, exist_ok=True)
    scripts = [_make_script(difference) for difference in differences]
    for number, (row, script) in enumerate(zip(differences, scripts, strict=True)):
        if row.row is None:
            file = directory / f"{seed}-{number}-{row.program.category}.py"
            file.write_text(script, encoding="utf-8")
    programs = sum(counts[name] for name in generator.CATEGORIES)
    document = {
        "schema_version": report.SCHEMA_VERSION,
        "environment": stack,
        "seed": seed,
        "programs": {name: counts[name] for name in generator.CATEGORIES},
        "calls": counts["calls"],
        "numpy": {kind: counts[f"numpy {kind}"] for kind in ("requested", "computed")},
        "seconds": round(seconds),
        "differences": [
            {
                "category": row.program.category,
                "difference": asdict(row.difference),
                "cause": row.cause,
                "listed": row.row.reason if row.row else None,
                "script": script,
            }
            for row, script in zip(differences, scripts, strict=True)
        ],
    }
    file = paths.REPORTS / f"{stack}-fuzz.json"
    report.write(document, file)
    rows = [[name, str(counts[name])] for name in generator.CATEGORIES if counts[name]]
    progress.print_table(["category", "programs"], rows)
    rate = programs / max(seconds, 1e-9)
    listed_count = sum(row.row is not None for row in differences)
    progress.say(
        f"{programs} programs, {counts['calls']} calls, {rate:.1f} programs per second; "
        f"{len(differences)} differ, {listed_count} of these are listed"
    )
    progress.say(
        f"NumPy computed {counts['numpy computed']} of {counts['numpy requested']} outputs of calls"
    )
    progress.say(f"report: {file}")
