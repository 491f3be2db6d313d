"""Random programs judge a stack's Theano, held against it unoptimized, and against stock Theano."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from builder import report
from builder.common import locks, paths, processes, progress
from builder.common.errors import ConfigurationError, FuzzingFailed, UsageError
from builder.environment import envs
from builder.measure import references
from builder.stack import stacks
from fuzz import generating, judging, known, program
from fuzz.judging import Found, Workers
from fuzz.known import Known

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KNOWN = paths.ROOT / "fuzz" / "known.toml"
# Of a difference, how many smaller programs are tried.
ATTEMPTS = 250
# Seconds that it may take; less of what was found several times already.
PATIENCE, LATER, SEVERAL = 12, 3, 2
# After so many that are not listed, a run ends.
ENOUGH = 40
# A line tells how far it is, so often.
EVERY = 30
UNSHIPPED = "cmodule.shipped=,cache_optimizations=False"
# As the steps of an oracle's scans are compiled, which have no mode of their own.
UNOPTIMIZED = "mode=Mode,linker=py,optimizer=None"


@dataclass(frozen=True)
class Limits:
    """When a run ends: after so many seconds or programs, 0 for none of them."""

    seconds: int
    programs: int


def fuzz(stack: str, limits: Limits, seed: int, chosen: str) -> None:
    """Run programs in a stack, and report what differs.

    Args:
        chosen: categories, with commas between; all if it is empty.

    Raises:
        UsageError: there is no such category, or the stack has no Python 3.
        EnvironmentFailed: the stack is not built.
        CommandFailed: another run has the stack.
        ConfigurationError: known.toml has a row that says nothing.
        FuzzingFailed: there is a difference that is not listed.
    """
    categories = chosen.split(",") if chosen else list(generating.CATEGORIES)
    if others := sorted(set(categories) - set(generating.CATEGORIES)):
        names = ", ".join(generating.CATEGORIES)
        raise UsageError(f"unknown category {others[0]!r}", f"choose of: {names}")
    name = stacks.of_today(stack, "fuzz").name
    envs.require(name)
    table = load(KNOWN)
    counts: Counter[str] = Counter()
    found: list[Found] = []
    taken = f"random programs run on {name} already, in {paths.FUZZING / name}"
    with (
        locks.alone(paths.FUZZING / name, taken, "wait until they have ended"),
        _workers(name, counts) as workers,
    ):
        begun = time.monotonic()
        for each in _programs(limits, seed, categories, begun):
            counts[each.category] += 1
            counts["calls"] += len(each.calls) * (len(each.situations) + 1)
            patience = LATER if _frequent(each, found) else PATIENCE
            if difference := judging.investigate(each, workers, table, ATTEMPTS, patience):
                found.append(difference)
                _tell(difference)
            if sum(each.row is None for each in found) >= ENOUGH:
                progress.say(f"{ENOUGH} differences are enough")
                break
        seconds = time.monotonic() - begun
    _report(name, seed, counts, seconds, found)
    unknown = [each for each in found if each.row is None]
    if unknown:
        raise FuzzingFailed(
            f"stack {name}, seed {seed}: {len(unknown)} differences that are not listed:\n"
            + "\n".join(f"  {each.program.category}: {each.difference}" for each in unknown),
            f"mend Theano, or list what stock Theano does alike in {KNOWN}; "
            f"programs: {paths.REPORTS / f'{name}-fuzz'}",
        )


def _frequent(candidate: program.Program, found: list[Found]) -> bool:
    """Whether several programs of its category differed, the last of them alike."""
    kinds = [e.difference.like for e in found if e.program.category == candidate.category]
    return len(kinds) >= SEVERAL and len(set(kinds[-SEVERAL:])) == 1


def load(file: Path) -> tuple[Known, ...]:
    """The differences that are listed.

    Raises:
        ConfigurationError: a row has other keys than a Known has.
    """
    try:
        return known.parse(tomllib.loads(file.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ConfigurationError(f"{file}: {error}") from error


def _programs(
    limits: Limits, seed: int, names: list[str], begun: float
) -> Iterator[program.Program]:
    """The programs of a seed, category by category in turn."""
    number, told = 0, begun
    while not limits.programs or number < limits.programs:
        now = time.monotonic()
        if limits.seconds and now - begun > limits.seconds:
            return
        if now - told > EVERY:
            told = now
            progress.say(f"{number} programs, {number / (now - begun):.1f} a second")
        yield generating.generate(seed, names[number % len(names)], number // len(names))
        number += 1


@contextlib.contextmanager
def _workers(stack: str, counts: Counter[str]) -> Iterator[Workers]:
    """The processes that are asked; what NumPy is, is counted."""
    with contextlib.ExitStack() as started:

        def start(
            environment: str, role: str, flags: str = "", module: str = "fuzz.worker"
        ) -> judging.Ask:
            # Not stock Theano's of another stack's run, whose lock it would wait for.
            directory = paths.FUZZING / stack / environment
            home = directory / role
            home.mkdir(parents=True, exist_ok=True)
            # Those of an environment share what they compiled, but for what must be alone.
            shared = home if flags == UNSHIPPED else directory
            settings = [f"base_compiledir={shared / 'compiledir'}", "on_opt_error=warn", flags]
            environ = {
                **processes.clean_environ(),
                "HOME": str(home),
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": str(paths.ROOT),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONHASHSEED": "0",
                "THEANO_FLAGS": ",".join(filter(None, settings)),
            }
            talk = started.enter_context(
                processes.Conversation(
                    [envs.python(environment), "-m", module], env=environ, cwd=home
                )
            )
            return lambda question: dict(json.loads(talk.ask(json.dumps(question))))

        stock = stock_oracle = None
        if (paths.ENVIRONMENTS / references.STOCK / references.MARK).exists():
            stock = start(references.STOCK, "stock")
            stock_oracle = start(references.STOCK, "oracle", UNOPTIMIZED)
        else:
            progress.say("stock Theano is not installed (./invoke references): nobody to ask")
        yield Workers(
            stack=start(stack, "stack"),
            elsewhere={
                "again": start(stack, "again"),
                "unshipped": start(stack, "unshipped", UNSHIPPED),
            },
            oracle=start(stack, "oracle", UNOPTIMIZED),
            stock=stock,
            stock_oracle=stock_oracle,
            numpy=_counted(start(stack, "numpy", module="fuzz.twins"), counts),
        )


def _counted(ask: judging.Ask, counts: Counter[str]) -> judging.Ask:
    """Count the outputs that NumPy is asked for, and those that it has a value of."""

    def asked(question: dict[str, Any]) -> dict[str, Any]:
        answer = ask(question)
        counts["numpy asked"] += len(question["outputs"]) * len(question["calls"])
        counts["numpy told"] += sum(
            value is not None
            for call in answer["runs"]["plain"]["calls"]
            for value in call["outputs"]
        )
        return answer

    return asked


def _tell(found: Found) -> None:
    listed = f" (listed: {found.row.reason})" if found.row else ""
    progress.say(f"{found.program.category}: {found.difference}; {found.cause}{listed}")
    if found.row is None:
        progress.say(_script(found))


def _script(found: Found) -> str:
    where = found.difference
    comment = f"{where.kind} ({where.situation}), held against {found.judge}; cause: {found.cause}."
    return program.script(found.program, where.kind, _assertions(found), comment)


def _assertions(found: Found) -> list[str]:
    """The lines that fail where a program still differs, if that can be told by its results."""
    where = found.difference
    told = [f"# {line[:300]}" for line in (f"found: {where.found}", f"not: {where.expected}")]
    answers = found.expected.get("runs", {}).get("plain", {}).get("calls", [])
    if where.call < 0 or "outputs" not in answers[where.call]:
        return told
    number = max(where.output, 0)
    dtype, shape, elements = answers[where.call]["outputs"][number]
    pairs = [tuple(each) if isinstance(each, list) else each for each in elements]
    value = program.Value(dtype, tuple(shape), tuple(pairs)).source()
    slack = found.program.tolerance if "float" in dtype or "complex" in dtype else 0
    return [
        *told,
        f"expected = {value}",
        f"result = np.asarray(found[{where.call}][{number}])",
        "assert (result.dtype, result.shape) == (expected.dtype, expected.shape)",
        f"np.testing.assert_allclose(result, expected, {slack}, {slack})",
    ]


def _report(
    stack: str, seed: int, counts: Counter[str], seconds: float, found: list[Found]
) -> None:
    """Write the report, and a script of each program that differs."""
    directory = paths.REPORTS / f"{stack}-fuzz"
    directory.mkdir(parents=True, exist_ok=True)
    scripts = [_script(each) for each in found]
    for number, (each, script) in enumerate(zip(found, scripts, strict=True)):
        if each.row is None:
            file = directory / f"{seed}-{number}-{each.program.category}.py"
            file.write_text(script, encoding="utf-8")
    programs = sum(counts[name] for name in generating.CATEGORIES)
    document = {
        "schema_version": report.SCHEMA_VERSION,
        "environment": stack,
        "seed": seed,
        "programs": {name: counts[name] for name in generating.CATEGORIES},
        "calls": counts["calls"],
        "numpy": {each: counts[f"numpy {each}"] for each in ("asked", "told")},
        "seconds": round(seconds),
        "differences": [
            {
                "category": each.program.category,
                "difference": asdict(each.difference),
                "cause": each.cause,
                "listed": each.row.reason if each.row else None,
                "script": script,
            }
            for each, script in zip(found, scripts, strict=True)
        ],
    }
    file = paths.REPORTS / f"{stack}-fuzz.json"
    report.write(document, file)
    rows = [[name, str(counts[name])] for name in generating.CATEGORIES if counts[name]]
    progress.table(["category", "programs"], rows)
    rate = programs / max(seconds, 1e-9)
    progress.say(
        f"{programs} programs, {counts['calls']} calls, {rate:.1f} programs a second; "
        f"{len(found)} differ, {sum(each.row is not None for each in found)} of them as listed"
    )
    progress.say(
        f"NumPy has twins for {counts['numpy told']} of {counts['numpy asked']} outputs of calls"
    )
    progress.say(f"report: {file}")
