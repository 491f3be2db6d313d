"""Compile time: environments measured side by side on the graphs of ``bench/``.

Every measurement is a process of its own with a home of its own, which holds its compile cache;
the environments take turns. A measurement replaces its own row of the report only, so that one
that takes 20 minutes is kept.
"""

from __future__ import annotations

import math
import string
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from builder import report
from builder.common import paths, progress
from builder.common.errors import CommandFailed, UsageError, VerifyFailed
from builder.measure import bar_chart, bench
from builder.measure.references import PEERS, STOCK

GRAPHS = {
    "ntm": "Neural Turing Machine, 4 read heads",
    "ntm1": "Neural Turing Machine, 1 read head",
    "lstm": "3 layers of LSTM",
    "mlp": "20 dense layers",
    "conv": "2 convolutions",
    "tiny": "200 tiny functions",
    "transformer": "a transformer's block",
    "vae": "a variational autoencoder",
}
# Those of which others can be asked for, as mlp200: what such a graph is.
SIZED = {
    "ntm": "Neural Turing Machine, {} read heads",
    "lstm": "{} layers of LSTM",
    "mlp": "{} dense layers",
    "tiny": "{} tiny functions",
}
CACHES = ("empty", "warm")
PHASES = ("import", "graph", "optimizer", "linker", "compile", "first call")
# 10 to 20 minutes for each cache: --quick leaves them out.
SLOW = {(STOCK, "ntm"), ("pytensor", "ntm")}
# PyTensor convolves single images only, and its random streams are others.
UNSUPPORTED = {("pytensor", "conv"), ("pytensor", "vae")}

Row = dict[str, Any]
# By graph, environment and state of the compile cache.
Rows = dict[str, dict[str, dict[str, Row]]]


def measure(environments: Sequence[str], graphs: Sequence[str], quick: bool) -> Path:
    """Measure the time to a first training call; write the report, its picture, and a table.

    Returns:
        The report's file.

    Raises:
        UsageError: there is no such graph.
        CommandFailed: a graph does not compile, but for stock Theano, where that is told.
        VerifyFailed: environments compute different losses.
    """
    for graph in graphs:
        if graph not in GRAPHS and _name_and_size(graph)[0] not in SIZED:
            choice = f"choose of: {', '.join(GRAPHS)}; or another size, as mlp200"
            raise UsageError(f"unknown graph {graph!r}", choice)
    file = paths.REPORTS / "bench-compile.json"
    turns = [
        (graph, cache, name)
        for graph in graphs
        for cache in CACHES
        for name in environments
        if (name, graph) not in UNSUPPORTED
        and not (quick and (name, graph) in SLOW)
        # Large ones take it hours, or deeper recursion than Python's.
        and (name != STOCK or graph in GRAPHS)
    ]
    started = time.monotonic()
    for done, (graph, cache, name) in enumerate(turns, 1):
        try:
            row = measure_one(name, graph, cache)
        except CommandFailed as error:
            # It takes BLAS from the host, and batches no products without.
            if name != STOCK:
                raise
            progress.say(f"{graph} {cache} {name} failed: {str(error).splitlines()[-1].strip()}")
            continue
        # Read again: another measurement may have ended meanwhile.
        document = _document(file)
        document["rows"].setdefault(graph, {}).setdefault(name, {})[cache] = row
        report.write(document, file)
        left = progress.left(done, len(turns), started)
        progress.say(f"{graph} {cache} {name}: {total(row):.1f} s{left}")
    rows: Rows = _document(file)["rows"]
    progress.table(*table(rows))
    image = file.with_suffix(".svg")
    drawn = bar_chart.stacked_bars("Seconds to a first result", PHASES, bars(rows))
    image.write_text(drawn, encoding="utf-8")
    progress.say(f"{file}\n{image}")
    if wrong := disagreements(rows):
        raise VerifyFailed("environments compute different losses:\n  " + "\n  ".join(wrong))
    return file


def _document(file: Path) -> dict[str, Any]:
    """The report so far; an empty one if that is another machine's."""
    before = report.read(file)
    if before.get("machine") == bench.machine():
        return before
    return {**bench.document(), "rows": {}}


def measure_one(environment: str, graph: str, cache: str) -> Row:
    """Run ``bench/compilation.py`` in an environment; its answer, and the circumstances."""
    framework = environment if environment in PEERS else "theano"
    command = (paths.BENCH / "compilation.py", framework, graph)
    return bench.answer(environment, graph, *command, empty=cache == "empty")


def total(row: Row) -> float:
    """Wall seconds from a process's start to its first result."""
    return float(sum(row["phases"].values()))


def _name_and_size(graph: str) -> tuple[str, int]:
    name = graph.rstrip(string.digits)
    return name, int(graph[len(name) :] or 0)


def title(graph: str) -> str:
    """What a graph is."""
    if graph in GRAPHS:
        return GRAPHS[graph]
    name, size = _name_and_size(graph)
    return SIZED[name].format(size)


def _measured(rows: Rows) -> Iterator[tuple[str, str, str, Row]]:
    """Each row with its graph, cache and environment: other sizes last, stock Theano first."""
    others = sorted(rows.keys() - GRAPHS.keys(), key=_name_and_size)
    for graph in (*(name for name in GRAPHS if name in rows), *others):
        for cache in CACHES:
            for name in sorted(rows[graph], key=lambda name: (name != STOCK, name)):
                if cache in rows[graph][name]:
                    yield graph, cache, name, rows[graph][name][cache]


def bars(rows: Rows) -> dict[str, dict[str, dict[str, float]]]:
    """What the picture shows: for each graph, the phases by environment and cache."""
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for graph, cache, name, row in _measured(rows):
        phases = {phase: row["phases"][phase] for phase in PHASES if phase in row["phases"]}
        groups.setdefault(title(graph), {})[f"{name}, {cache} cache"] = phases
    return groups


def table(rows: Rows) -> tuple[list[str], list[list[str]]]:
    """The report as a table: its head and its lines. What is neither optimizer nor C is rest."""
    head = ["graph", "cache", "environment", "wall s", "CPU s"]
    head += ["optimizer", "C or XLA", "rest", "MB", "g++", "ms/call", "bound"]
    lines = []
    for graph, cache, name, row in _measured(rows):
        optimizer = row["phases"].get("optimizer", 0)
        machine_code = row["phases"].get("linker", 0) + row["phases"].get("compile", 0)
        seconds = (total(row), row["cpu"], optimizer, machine_code)
        cells = [f"{each:.1f}" for each in (*seconds, total(row) - optimizer - machine_code)]
        memory = f"{row['peak_memory'] / 1e6:.0f}"
        call = f"{row['call'] * 1e3:.2f}"
        bound = f"{least(rows[graph]) * 1e3:.2f}"
        lines.append([graph, cache, name, *cells, memory, str(row["compilers"]), call, bound])
    return head, lines


def least(by_environment: dict[str, dict[str, Row]]) -> float:
    """The seconds that a graph's call takes at least: the least that any process found."""
    rows = [row for by_cache in by_environment.values() for row in by_cache.values()]
    # Rows of before have none.
    found = (float(sum(row["bound"].values())) for row in rows if "bound" in row)
    return min(found, default=math.nan)


def disagreements(rows: Rows) -> list[str]:
    """The environments whose first losses are not those of the others on the same graph."""
    first: dict[str, list[float]] = {}
    found = []
    for graph, cache, name, row in _measured(rows):
        expected = first.setdefault(graph, row["losses"])
        if not bench.agree(row["losses"], expected):
            found.append(f"{graph} on {name} ({cache} cache): {row['losses']}, not {expected}")
    return found
