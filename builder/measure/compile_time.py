"""Measure the time from the import of a framework to the result of a graph's first call.

Each measurement is a new process. Each pair of an environment and a graph has its own home
directory, which contains its compile cache. The runs of the environments alternate, also if a
measurement is repeated. A measurement replaces only its own row of the report, because some rows
take 20 minutes to measure.
"""

from __future__ import annotations

import math
import statistics
import string
import time
from collections import defaultdict
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
# The graphs whose names may end with a size, and their descriptions: mlp200 has 200 dense layers.
SIZED = {
    "ntm": "Neural Turing Machine, {} read heads",
    "lstm": "{} layers of LSTM",
    "mlp": "{} dense layers",
    "tiny": "{} tiny functions",
}
# The states of the compile cache before the process starts.
CACHES = ("empty", "warm")
# The phases of a row, in their order. No framework has all of them.
PHASES = ("import", "graph", "optimizer", "linker", "compile", "first call")
# The environments and graphs that --quick omits: a measurement takes 10 to 20 minutes.
SLOW = {(STOCK, "ntm"), ("pytensor", "ntm")}
# Graphs that PyTensor cannot run. Its convolution accepts only single images (conv), and its random
# streams differ from Theano's (vae).
UNSUPPORTED = {("pytensor", "conv"), ("pytensor", "vae")}

# The JSON that bench/compilation.py prints; its docstring explains the keys.
Row = dict[str, Any]
# Rows by graph, environment and state of the compile cache.
Rows = dict[str, dict[str, dict[str, Row]]]


def measure(
    environments: Sequence[str],
    graphs: Sequence[str],
    quick: bool,
    runs: int = 1,
    dtype: str = "float64",
) -> Path:
    """Measure the time to the first result; write the report and its chart, and print a table.

    Args:
        environments: stacks and references.
        graphs: keys of GRAPHS, or keys of SIZED followed by a size, such as ``mlp200``.
        quick: whether to omit the measurements in SLOW.
        runs: the number of runs of each graph, cache state and environment.
        dtype: the dtype of the graphs' numbers, float64 or float32.

    Returns:
        The report's file.

    Raises:
        UsageError: a graph is unknown.
        CommandFailed: a graph does not compile or run in an environment other than stock Theano.
            After an error of stock Theano, print the error and continue.
        VerifyFailed: environments compute different losses.
    """
    for graph in graphs:
        if graph not in GRAPHS and _split_size(graph)[0] not in SIZED:
            choice = f"choose among: {', '.join(GRAPHS)}; or another size, such as mlp200"
            raise UsageError(f"unknown graph {graph!r}", choice)
    suffix = "" if dtype == "float64" else f"-{dtype}"
    file = paths.REPORTS / f"bench-compile{suffix}.json"
    turns = [
        (graph, cache, name)
        for graph in graphs
        for _ in range(runs)
        for cache in CACHES
        for name in environments
        if (name, graph) not in UNSUPPORTED
        and not (quick and (name, graph) in SLOW)
        # Stock Theano takes hours for large graphs, or exceeds Python's recursion limit.
        and (name != STOCK or graph in GRAPHS)
    ]
    measured: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    started = time.monotonic()
    for number, (graph, cache, name) in enumerate(turns, 1):
        try:
            row = measure_one(name, graph, cache, dtype)
        except CommandFailed as error:
            # Stock Theano uses the host's BLAS. Without a BLAS it has no batched products.
            if name != STOCK:
                raise
            progress.say(f"{graph} {cache} {name} failed: {str(error).splitlines()[-1].strip()}")
            continue
        # Read the report again: another process may have written a row during the measurement.
        document = _read_report(file)
        rows_of_graph = document["rows"].setdefault(graph, {}).setdefault(name, {})
        measured[graph, cache, name].append(row)
        rows_of_graph[cache] = combine_runs(measured[graph, cache, name])
        report.write(document, file)
        time_left = progress.format_time_left(number, len(turns), started)
        progress.say(f"{graph} {cache} {name}: {compute_total_seconds(row):.1f} s{time_left}")
    rows: Rows = _read_report(file)["rows"]
    progress.print_table(*make_table(rows))
    image = file.with_suffix(".svg")
    chart = bar_chart.draw_stacked_bars("Seconds to a first result", PHASES, make_bars(rows))
    image.write_text(chart, encoding="utf-8")
    progress.say(f"{file}\n{image}")
    if disagreements := find_disagreements(rows, dtype):
        raise VerifyFailed(
            "environments compute different losses:\n  " + "\n  ".join(disagreements)
        )
    return file


def _read_report(file: Path) -> dict[str, Any]:
    """Read the report; return a report without rows if there is none of this machine."""
    document = report.read(file)
    if document.get("machine") == bench.describe_machine():
        return document
    return {**bench.start_document(), "rows": {}}


def measure_one(environment: str, graph: str, cache: str, dtype: str) -> Row:
    """Run ``bench/compilation.py`` in an environment; return its row of the report.

    Args:
        environment: a stack or a reference.
        graph: the name of a graph.
        cache: the state of the compile cache, one of CACHES.
        dtype: the dtype of the graph's numbers.
    """
    framework = environment if environment in PEERS else "theano"
    command = (paths.BENCH / "compilation.py", framework, graph, dtype)
    home = f"{graph}-{dtype}"
    return bench.run_measurement(environment, home, *command, empty=cache == "empty")


def combine_runs(runs: Sequence[Row]) -> Row:
    """Combine the rows of several runs: return the row with the median of the total seconds.

    Replace its ``call`` by the median of the runs. Add the keys ``totals`` and ``calls`` with the
    seconds of all runs.
    """
    if len(runs) == 1:
        return runs[0]
    totals = [compute_total_seconds(row) for row in runs]
    calls = [row["call"] for row in runs]
    median = runs[totals.index(statistics.median_low(totals))]
    return {
        **median,
        "call": statistics.median_low(calls),
        "totals": totals,
        "calls": calls,
        "provenance": {**median["provenance"], "runs": len(runs)},
    }


def compute_total_seconds(row: Row) -> float:
    """Return the wall seconds from the import of the framework to the first result."""
    return float(sum(row["phases"].values()))


def _split_size(graph: str) -> tuple[str, int]:
    """Split the size off a graph's name: ("mlp", 200) for ``mlp200``, ("mlp", 0) for ``mlp``."""
    name = graph.rstrip(string.digits)
    return name, int(graph[len(name) :] or 0)


def describe_graph(graph: str) -> str:
    """Return the description of a graph, such as "200 dense layers" for ``mlp200``."""
    if graph in GRAPHS:
        return GRAPHS[graph]
    name, size = _split_size(graph)
    return SIZED[name].format(size)


def _iterate_rows(rows: Rows) -> Iterator[tuple[str, str, str, Row]]:
    """Yield each row with its graph, state of the cache and environment, in the table's order.

    Graphs outside of GRAPHS, such as ``mlp200``, come last. For each graph and state of the cache,
    stock Theano comes first.

    Yields:
        Graph, state of the cache, environment, row.
    """
    resized = sorted(rows.keys() - GRAPHS.keys(), key=_split_size)
    for graph in (*(name for name in GRAPHS if name in rows), *resized):
        for cache in CACHES:
            for name in sorted(rows[graph], key=lambda name: (name != STOCK, name)):
                if cache in rows[graph][name]:
                    yield graph, cache, name, rows[graph][name][cache]


def make_bars(rows: Rows) -> dict[str, dict[str, dict[str, float]]]:
    """Return the groups of bars for the chart.

    Returns:
        The seconds of each phase, by description of the graph, then by environment and state of
        the cache, then by phase.
    """
    groups: dict[str, dict[str, dict[str, float]]] = {}
    for graph, cache, name, row in _iterate_rows(rows):
        phases = {phase: row["phases"][phase] for phase in PHASES if phase in row["phases"]}
        groups.setdefault(describe_graph(graph), {})[f"{name}, {cache} cache"] = phases
    return groups


def make_table(rows: Rows) -> tuple[list[str], list[list[str]]]:
    """Format the report as a table.

    "C or XLA" is the time of the phases ``linker`` and ``compile``. "other" is the wall time minus
    the columns "optimizer" and "C or XLA".

    Returns:
        The header and the lines.
    """
    head = ["graph", "cache", "environment", "wall s", "CPU s"]
    head += ["optimizer", "C or XLA", "other", "MB", "g++", "ms/call", "bound"]
    lines = []
    for graph, cache, name, row in _iterate_rows(rows):
        optimizer = row["phases"].get("optimizer", 0)
        machine_code = row["phases"].get("linker", 0) + row["phases"].get("compile", 0)
        seconds = (compute_total_seconds(row), row["cpu"], optimizer, machine_code)
        cells = [
            f"{value:.1f}"
            for value in (*seconds, compute_total_seconds(row) - optimizer - machine_code)
        ]
        memory = f"{row['peak_memory'] / 1e6:.0f}"
        call = f"{row['call'] * 1e3:.2f}"
        bound = f"{find_lower_bound(rows[graph]) * 1e3:.2f}"
        lines.append([graph, cache, name, *cells, memory, str(row["compilers"]), call, bound])
    return head, lines


def find_lower_bound(by_environment: dict[str, dict[str, Row]]) -> float:
    """Return the least bound of the BLAS in a graph's rows, in seconds; NaN without a bound.

    Args:
        by_environment: a graph's rows, by environment and state of the cache.
    """
    rows = [row for by_cache in by_environment.values() for row in by_cache.values()]
    # Rows that an older version measured have no bound.
    bounds = (float(sum(row["bound"].values())) for row in rows if "bound" in row)
    return min(bounds, default=math.nan)


def find_disagreements(rows: Rows, dtype: str = "float64") -> list[str]:
    """Describe the rows whose losses differ from the losses in the same graph's first row."""
    first: dict[str, list[float]] = {}
    disagreements = []
    for graph, cache, name, row in _iterate_rows(rows):
        expected = first.setdefault(graph, row["losses"])
        if not bench.losses_agree(row["losses"], expected, dtype):
            disagreements.append(
                f"{graph} on {name} ({cache} cache): {row['losses']}, not {expected}"
            )
    return disagreements
