"""Compile time: environments measured side by side on the graphs of ``bench/``.

Every measurement is a process of its own with a home of its own, which holds its compile cache;
the environments take turns. A measurement replaces its own row of the report only, so that one
that takes 20 minutes is kept.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from builder import envs, paths, picture, pipeline, progress, references, report
from builder.errors import EnvironmentFailed, UsageError
from builder.references import STOCK
from builder.run import run

GRAPHS = {
    "ntm": "Neural Turing Machine, 4 read heads",
    "ntm1": "Neural Turing Machine, 1 read head",
    "lstm": "3 layers of LSTM",
    "mlp": "20 dense layers",
    "conv": "2 convolutions",
    "tiny": "200 tiny functions",
}
CACHES = ("empty", "warm")
# 20 minutes each: --quick leaves them out.
SLOW = {(STOCK, "ntm")}
UNSUPPORTED = {("pytensor", "conv")}

Row = dict[str, Any]
# By graph, environment and state of the compile cache.
Rows = dict[str, dict[str, dict[str, Row]]]


def compilation(environments: Sequence[str], graphs: Sequence[str], quick: bool) -> Path:
    """Measure the time to a first training call; write the report, its picture, and a table.

    Returns:
        The report's file.

    Raises:
        UsageError: there is no such graph.
        EnvironmentFailed: an environment is not there.
        CommandFailed: a graph does not compile.
    """
    _check(environments, graphs)
    file = paths.REPORTS / "bench-compile.json"
    document = _document(file)
    rows: Rows = document["rows"]
    for graph in graphs:
        chosen = [
            name
            for name in environments
            if (name, graph) not in UNSUPPORTED and not (quick and (name, graph) in SLOW)
        ]
        for cache in CACHES:
            for name in chosen:
                row = measure(name, graph, cache)
                rows.setdefault(graph, {}).setdefault(name, {})[cache] = row
                report.write(document, file)
                progress.say(f"{graph} {cache} {name}: {total(row):.1f} s")
    progress.table(*table(rows))
    image = file.with_suffix(".svg")
    image.write_text(picture.stacked_bars("Seconds to a first result", bars(rows)), "utf-8")
    progress.say(f"{file}\n{image}")
    return file


def _check(environments: Sequence[str], graphs: Sequence[str]) -> None:
    for graph in graphs:
        if graph not in GRAPHS:
            raise UsageError(f"unknown graph {graph!r}", f"choose of: {', '.join(GRAPHS)}")
    for name in environments:
        if name not in references.INTERPRETERS and envs.installed(name) is None:
            raise EnvironmentFailed(
                f"{paths.ENVIRONMENTS / name} is not built", f"./invoke build --stack={name}"
            )


def _document(file: Path) -> dict[str, Any]:
    """The report so far; an empty one if that is another machine's."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    machine = {"processor": model, "cpus": len(os.sched_getaffinity(0))}
    before = report.read(file)
    if before.get("machine") == machine:
        return before
    return {"schema_version": report.SCHEMA_VERSION, "machine": machine, "rows": {}}


def measure(environment: str, graph: str, cache: str) -> Row:
    """Run ``bench/compilation.py`` in an environment; its answer, with when and on what load."""
    home = paths.BENCHES / environment / graph
    if cache == "empty" and home.exists():
        shutil.rmtree(home)
    home.mkdir(parents=True, exist_ok=True)
    framework = "theano"
    if environment in references.INTERPRETERS and environment != STOCK:
        framework = environment
    clean = {key: value for key, value in os.environ.items() if key not in pipeline.FOREIGN}
    load = os.getloadavg()[0]
    done = run(
        [
            paths.ENVIRONMENTS / environment / "bin" / "python",
            paths.BENCH / "compilation.py",
            framework,
            graph,
        ],
        env={**clean, "HOME": str(home)},
        cwd=home,
    )
    row: Row = json.loads(done.output.splitlines()[-1])
    now = datetime.datetime.now(datetime.timezone.utc)
    return {**row, "load": load, "when": now.isoformat(timespec="seconds")}


def total(row: Row) -> float:
    """Wall seconds from a process's start to its first result."""
    return float(sum(row["phases"].values()))


def bars(rows: Rows) -> dict[str, dict[str, dict[str, float]]]:
    """What the picture shows: for each graph, the phases by environment and cache."""
    return {
        GRAPHS[graph]: {
            f"{name}, {cache} cache": row["phases"]
            for cache in CACHES
            for name, states in rows[graph].items()
            if (row := states.get(cache))
        }
        for graph in GRAPHS
        if graph in rows
    }


def table(rows: Rows) -> tuple[list[str], list[list[str]]]:
    """The report as a table: its head and its lines."""
    phases = ["import", "graph", "optimizer", "linker", "compile", "first call"]
    head = ["graph", "cache", "environment", "wall s", "CPU s", *phases, "MB", "g++", "ms/call"]
    lines = []
    for graph in GRAPHS:
        for cache in CACHES:
            for name, states in rows.get(graph, {}).items():
                if row := states.get(cache):
                    shown = [row["phases"].get(phase) for phase in phases]
                    lines.append(
                        [graph, cache, name, f"{total(row):.1f}", f"{row['cpu']:.1f}"]
                        + ["" if seconds is None else f"{seconds:.1f}" for seconds in shown]
                        + [f"{row['peak_memory'] / 1e6:.0f}", str(row["compilers"])]
                        + [f"{row['call'] * 1e3:.2f}", repr(row["losses"][0])]
                    )
    return [*head, "first loss"], lines
