"""Generate the tables of README.md and docs/ from measurements, most of them in ``bench/results``.

A document contains the comment ``<!-- table: NAME -->``, the table, and the comment
``<!-- end of table -->``. ``./invoke bench --tables`` writes the tables. ``./invoke lint`` fails if
a table differs from the measurements.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from builder import report
from builder.common import paths
from builder.common.errors import CommandFailed, ConfigurationError
from builder.common.files import read_toml, write_atomically
from builder.measure import benchmark_of_2017
from builder.measure.call_time import compute_speed_up
from builder.measure.compile_time import compute_total_seconds, find_lower_bound

RESULTS = paths.BENCH / "results"
# The driver calls of training steps on an emulated GPU, which tests/cuda compares with new counts.
DRIVER_CALLS = paths.ROOT / "tests" / "cuda" / "driver_calls.toml"
# The expression accepts no comment inside a table. Otherwise a table without an end would extend to
# the end of the next table, and the text between both tables would be lost.
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n)(?:(?!<!--).)*(<!-- end of table -->)", re.DOTALL)
# A cell without a measurement.
MISSING = "-"

# The descriptions of graphs in tables.
GRAPHS = {
    "ntm": "Neural Turing Machine, 4 read heads, 87 steps",
    "ntm1": "Neural Turing Machine, 1 read head, 87 steps",
    "lstm": "3 LSTM layers, 50 steps",
    "lstm6": "6 LSTM layers, 50 steps",
    "lstm12": "12 LSTM layers, 50 steps",
    "mlp": "20 dense layers",
    "mlp60": "60 dense layers",
    "mlp200": "200 dense layers",
    "conv": "2 convolutions",
    "tiny": "200 tiny functions",
    "tiny1000": "1,000 tiny functions",
    "tiny2000": "2,000 tiny functions",
    "transformer": "transformer block",
    "vae": "variational autoencoder",
}
# The graphs that `bench` measures by default, and graphs of several sizes.
BENCH = ("ntm", "ntm1", "lstm", "mlp", "conv", "tiny", "transformer", "vae")
GROWTH = ("mlp", "mlp60", "mlp200", "lstm", "lstm6", "lstm12", "tiny", "tiny1000", "tiny2000")
HEADINGS = {
    "stock": "stock Theano",
    "pytensor": "PyTensor",
    "openblas": "`openblas`",
    "jax": "JAX",
}
STACKS = ("openblas", "mkl", "openblas-amdlibm", "mkl-amdlibm")
# The environments of the benchmark of 2017; the first is the baseline of the ratios.
OF_2017 = ("2017-numpy", "2017-openblas", "2017-mkl", "2017-mkl-amdlibm", "openblas", "mkl-amdlibm")
ELEMENTWISE = ("exp", "log", "tanh", "sigmoid", "pow", "softplus", "LSTM cell")
# Maps a row of the table of speed-ups to its calls in run.json: in float32 and float64, or in
# float64 only.
CALLS = {
    "Theano's check_blas, 2000 x 2000": ["check_blas float32 2000", "check_blas float64 2000"],
    **{
        name: [f"{name.replace('LSTM', 'lstm')} {dtype} 1e+05" for dtype in ("float32", "float64")]
        for name in ELEMENTWISE
    },
    "small Neural Turing Machine, training step, float64": ["ntm-small"],
}

# A measurement in a file of bench/results.
Row = dict[str, Any]
# The header and the rows of a table, as lists of cells.
Lines = list[Sequence[str]]


def load_results(name: str) -> dict[str, Any]:
    """Read ``bench/results/NAME.json``.

    Raises:
        ConfigurationError: the file is missing or is not JSON.
    """
    if not (document := report.read(RESULTS / f"{name}.json")):
        raise ConfigurationError(f"bench/results/{name}.json is missing or is not JSON")
    return document


def make_first_calls(
    file: str, environments: Sequence[str], graphs: Sequence[str] = BENCH
) -> Lines:
    """Make rows of seconds to the first result: a row for each graph, cache state and day.

    Args:
        file: the name of a file in ``bench/results``, without its suffix.
        environments: keys of HEADINGS, one for each column.
        graphs: keys of GRAPHS.
    """
    lines: Lines = [
        ["graph", "compile cache", "measured", *map(HEADINGS.__getitem__, environments)]
    ]
    by_graph = load_results(file)["rows"]
    for graph in graphs:
        for cache in ("empty", "warm"):
            for day, rows in _group_by_day(by_graph[graph], cache, environments).items():
                cells = [
                    _format_seconds(compute_total_seconds(rows[name])) if name in rows else MISSING
                    for name in environments
                ]
                lines.append([GRAPHS[graph], cache, day, *cells])
    return lines


def make_calls(file: str, environments: Sequence[str]) -> Lines:
    """Make a row for each graph: the milliseconds of a call, and the bound of the BLAS.

    A cell has the median and the range of all processes.
    """
    lines: Lines = [["graph", *map(HEADINGS.__getitem__, environments), "bound of the BLAS"]]
    by_graph = load_results(file)["rows"]
    for graph in BENCH:
        rows = {name: by_graph[graph].get(name, {}) for name in environments}
        cells = [
            _format_spread([call * 1e3 for row in measured.values() for call in _list_calls(row)])
            if measured
            else MISSING
            for measured in rows.values()
        ]
        lines.append([GRAPHS[graph], *cells, _format_lower_bound(find_lower_bound(rows))])
    return lines


def make_call_ratios() -> Lines:
    """Make README's rows of calls compared with JAX: a row for each processor.

    The last column is the range of the graphs' ratios: the median time of ``openblas`` divided by
    the median time of JAX.
    """
    lines: Lines = [
        [
            "processor, day, theano package",
            "`openblas`, ms",
            "JAX, ms",
            "ratios of all eight graphs",
        ]
    ]
    for file in ("compile", "compile-xeon-2100"):
        by_graph = load_results(file)["rows"]
        medians = {
            graph: [
                median(chain.from_iterable(map(_list_calls, rows[name].values())))
                for name in ("openblas", "jax")
            ]
            for graph, rows in by_graph.items()
        }
        ratios = [stack / jax for stack, jax in medians.values()]
        row = by_graph["ntm"]["openblas"]["empty"]
        _, build = row["provenance"]["packages"]["theano"].split(" ", 1)
        lines.append(
            [
                f"{_find_processor(file)}, {_format_day(row['when'])}, {build}",
                *(_format_significant(seconds * 1e3) for seconds in medians["ntm"]),
                f"{min(ratios):.2f} to {max(ratios):.2f}",
            ]
        )
    return lines


def make_growth() -> Lines:
    """Make a row for each size of a graph: seconds to the first result, and peak memory in MB.

    The columns are for ``openblas`` and JAX.
    """
    lines: Lines = [
        [
            "graph",
            *(
                f"{cache}: {HEADINGS[name]}"
                for cache in ("empty", "warm")
                for name in ("openblas", "jax")
            ),
            "MB: `openblas`",
            "MB: JAX",
        ]
    ]
    measured = load_results("compile")["rows"] | load_results("scale")["rows"]
    for graph in GROWTH:
        rows = measured[graph]
        cells = [
            _format_seconds(compute_total_seconds(rows[name][cache]))
            for cache in ("empty", "warm")
            for name in ("openblas", "jax")
        ]
        memory = [_format_megabytes(rows[name]["empty"]) for name in ("openblas", "jax")]
        lines.append([GRAPHS[graph], *cells, *memory])
    return lines


def make_memory() -> Lines:
    """Make rows of the peak memory, in MB, of processes that start with an empty compile cache."""
    environments = ("stock", "pytensor", "openblas", "jax")
    lines: Lines = [["graph", "processor", "measured", *map(HEADINGS.__getitem__, environments)]]
    for file, graph in (
        ("compile-xeon-2500", "lstm"),
        ("compile", "lstm"),
        ("compile", "ntm"),
        ("compile-xeon-2100", "ntm"),
        ("compile-epyc", "ntm"),
    ):
        for day, rows in _group_by_day(
            load_results(file)["rows"][graph], "empty", environments
        ).items():
            cells = [
                _format_megabytes(rows[name]) if name in rows else MISSING for name in environments
            ]
            lines.append([GRAPHS[graph], _find_processor(file), day, *cells])
    return lines


def make_summary() -> Lines:
    """Make README's rows of seconds to the first result, with one processor and one day per row."""
    environments = ("stock", "pytensor", "openblas", "jax")
    lines: Lines = [
        ["graph", "compile cache", "processor, day", *map(HEADINGS.__getitem__, environments)]
    ]
    measurements = (
        ("compile", "ntm", "empty"),
        ("compile", "ntm", "warm"),
        ("compile", "lstm", "empty"),
        ("scale", "lstm12", "empty"),
        ("scale", "mlp200", "empty"),
        ("compile-xeon-2100", "ntm", "empty"),
        ("compile-xeon-2500", "lstm", "empty"),
        ("compile-epyc", "ntm", "empty"),
    )
    for file, graph, cache in measurements:
        for day, rows in _group_by_day(
            load_results(file)["rows"][graph], cache, environments
        ).items():
            cells = [
                _format_seconds(compute_total_seconds(rows[name])) if name in rows else MISSING
                for name in environments
            ]
            lines.append([GRAPHS[graph], cache, f"{_find_processor(file)}, {day}", *cells])
    return lines


def make_speed_ups() -> Lines:
    """Make a row for each call: the speed-ups of the STACKS over stock Theano, by dtype."""
    seconds = load_results("run")["seconds"]
    lines: Lines = [["call", *(f"`{name}`" for name in STACKS)]]
    for call, names in CALLS.items():
        cells = [
            " / ".join(
                _format_significant(compute_speed_up(seconds, stack, name)) for name in names
            )
            for stack in STACKS
        ]
        lines.append([call, *cells])
    return lines


def make_mean_speed_ups() -> Lines:
    """Make a row for each stack: the geometric means of its elementwise speed-ups, by dtype."""
    seconds = load_results("run")["seconds"]
    lines: Lines = [["stack", "float32", "float64"]]
    for stack in STACKS:
        means = [
            geometric_mean(compute_speed_up(seconds, stack, CALLS[call][i]) for call in ELEMENTWISE)
            for i in (0, 1)
        ]
        lines.append([f"`{stack}`", *(f"{mean:.1f}" for mean in means)])
    return lines


def make_gpu() -> Lines:
    """Make a row for each graph: the times of the stack ``cuda`` and of JAX on an H100 GPU."""
    measures = ("first call, empty cache", "first call, warm cache", "a call")
    heads = [f"{measure}: {name}" for measure in measures for name in ("`cuda`", "JAX")]
    lines: Lines = [["graph", *heads]]
    for graph, measured in load_results("h100")["rows"].items():
        cells = []
        for measure in measures:
            unit, factor = ("ms", 1e3) if measure == "a call" else ("s", 1)
            for name in ("cuda", "jax"):
                seconds = [value * factor for value in measured[name].get(measure, [])]
                cells.append(f"{_format_range(seconds)} {unit}" if seconds else MISSING)
        lines.append([GRAPHS[graph], *cells])
    return lines


def make_builds() -> Lines:
    """Make a row for each machine: the minutes of a build from an empty cache, and of all tests."""
    lines: Lines = [["processor, day", "`./invoke build --stack=openblas`", "`./invoke test`"]]
    for machine in load_results("builds")["machines"]:
        cells = [
            f"{machine[key] / 60:.1f} min" if key in machine else MISSING
            for key in ("build", "test")
        ]
        lines.append([f"{machine['name']}, {_format_day(machine['when'])}", *cells])
    return lines


def make_plain(file: str) -> Lines:
    """Make a table of the headings and rows of a file in ``bench/results``."""
    document = load_results(file)
    rows = [
        [cell if isinstance(cell, str) else _format_significant(cell) for cell in row]
        for row in document["rows"]
    ]
    return [document["headings"], *rows]


def make_calls_of_2017() -> Lines:
    """Make the table that ``./invoke bench --what=2017`` prints."""
    rows = load_results("2017")["rows"]
    header, lines = benchmark_of_2017.make_table({name: rows[name] for name in OF_2017})
    return [[header[0], *(f"`{name}`" for name in header[1:])], *lines]


def make_driver_calls() -> Lines:
    """Make a row for each graph: calls of the driver in a training step on a GPU.

    The first columns are the calls without CUDA graphs; the last column is the number of launched
    CUDA graphs.
    """
    groups = ("launches", "copies to the host", "copies to the device", "queries")
    lines: Lines = [["graph", *groups, "CUDA graphs"]]
    for graph, table in read_toml(DRIVER_CALLS).items():
        cells = [f"{table[group]:,}" for group in groups]
        launched = table["replayed"]["graph launches"] if "replayed" in table else 0
        lines.append([GRAPHS[graph], *cells, str(launched)])
    return lines


TABLES: dict[str, Callable[[], Lines]] = {
    "builds": make_builds,
    "summary": make_summary,
    "call-ratios": make_call_ratios,
    "mean-speed-ups": make_mean_speed_ups,
    "gpu": make_gpu,
    "first-calls": lambda: make_first_calls("compile", ("openblas", "jax")),
    "first-calls-of-stock-xeon": lambda: make_first_calls(
        "compile-xeon-2500", ("stock", "openblas")
    ),
    "first-calls-xeon": lambda: make_first_calls("compile-xeon-2100", ("openblas", "jax")),
    "first-calls-of-stock-epyc": lambda: make_first_calls("compile-epyc", ("stock", "pytensor")),
    "calls": lambda: make_calls("compile", ("openblas", "jax")),
    "calls-float32": lambda: make_calls("compile-float32", ("openblas", "jax")),
    "calls-busy": lambda: make_calls("compile-busy", ("openblas", "jax")),
    "calls-of-stock-xeon": lambda: make_calls("compile-xeon-2500", ("stock", "openblas")),
    "calls-xeon": lambda: make_calls("compile-xeon-2100", ("openblas", "jax")),
    "growth": make_growth,
    "memory": make_memory,
    "products": lambda: make_plain("products"),
    "speed-ups": make_speed_ups,
    "sizes": lambda: make_plain("sizes"),
    "calls-of-2017": make_calls_of_2017,
    "driver-calls": make_driver_calls,
}


def list_documents() -> list[Path]:
    """List the documents that may contain tables."""
    return [paths.ROOT / "README.md", *sorted((paths.ROOT / "docs").glob("*.md"))]


def fill_tables(text: str) -> str:
    """Replace each marked table in a document's text by the generated table; return the text.

    Raises:
        ConfigurationError: the text names an unknown table.
    """

    def replace(match: re.Match[str]) -> str:
        if match[2] not in TABLES:
            raise ConfigurationError(
                f"unknown table {match[2]!r}", f"choose one of: {', '.join(TABLES)}"
            )
        return f"{match[1]}\n{format_markdown(TABLES[match[2]]())}\n{match[3]}"

    return MARKED.sub(replace, text)


def format_markdown(lines: Lines) -> str:
    """Render a header and rows as a Markdown table."""
    head, *rows = (f"| {' | '.join(cells)} |\n" for cells in lines)
    return "".join([head, "|---" * len(lines[0]) + "|\n", *rows])


def update() -> list[Path]:
    """Write the generated tables into the documents; return the changed files."""
    changed = []
    for file in list_documents():
        text = file.read_text(encoding="utf-8")
        if (new_text := fill_tables(text)) != text:
            write_atomically(file, new_text)
            changed.append(file)
    return changed


def check() -> None:
    """Compare the documents' tables with the tables that :func:`fill_tables` generates.

    Raises:
        CommandFailed: a table differs from the results.
    """
    texts = {file: file.read_text(encoding="utf-8") for file in list_documents()}
    if stale := [file.name for file, text in texts.items() if fill_tables(text) != text]:
        raise CommandFailed(
            f"tables of {', '.join(stale)} differ from bench/results",
            "./invoke bench --tables writes them",
        )


def _group_by_day(
    by_environment: dict[str, dict[str, Row]], cache: str, environments: Sequence[str]
) -> dict[str, dict[str, Row]]:
    """Group the rows of one cache state by the day of their measurement, oldest day first.

    Args:
        by_environment: a graph's rows, by environment and cache state.

    Returns:
        Rows by day, such as ``3 Nov 2026``, and by environment.
    """
    days: dict[datetime.date, dict[str, Row]] = {}
    for name in environments:
        if cache in (rows := by_environment.get(name, {})):
            day = datetime.datetime.fromisoformat(rows[cache]["when"]).date()
            days.setdefault(day, {})[name] = rows[cache]
    return {_format_day(day.isoformat()): days[day] for day in sorted(days)}


def _format_day(when: str) -> str:
    """Format the day of a time in ISO format, such as ``3 Nov 2026``."""
    day = datetime.datetime.fromisoformat(when)
    return f"{day.day} {day:%b %Y}"


def _find_processor(file: str) -> str:
    """Return the name of the processor on which the measurements of a file were made."""
    machine = load_results(file)["machine"]
    return str(machine.get("name", machine["processor"]))


def _list_calls(row: Row) -> list[float]:
    """Return the median seconds of a call in each run of a row."""
    calls: list[float] = row.get("calls", [row["call"]])
    return calls


def _format_seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _format_megabytes(row: Row) -> str:
    return f"{row['peak_memory'] / 1e6:,.0f}"


def _format_range(values: Sequence[float]) -> str:
    low, high = (_format_significant(value) for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _format_spread(values: Sequence[float]) -> str:
    """Format the median and the range of many values, or the range of two values."""
    if len(values) > 2:
        return f"{_format_significant(median(values))} ({_format_range(values)})"
    return _format_range(values)


def _format_significant(value: float) -> str:
    """Format a value with three significant digits, or as an integer from 100 on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _format_lower_bound(seconds: float) -> str:
    """Format a bound of the BLAS in ms; MISSING if it is below 0.01 ms."""
    milliseconds = seconds * 1e3
    return _format_significant(milliseconds) if milliseconds >= 0.01 else MISSING
