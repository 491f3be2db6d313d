"""Repeat a user's benchmark of 2017 on the stacks of Theano 0.8.2 and on other stacks.

In the first round, each environment runs ``bench/training_of_2017.py`` with an empty compile cache.
At most one environment per CPU compiles at the same time, and only one environment makes calls.
Further rounds repeat the calls of the small size, because the machine's load can change between two
environments. The report has the fastest round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from builder import report
from builder.common import paths, progress
from builder.common.errors import VerifyFailed
from builder.common.processes import count_cpus
from builder.measure import bar_chart, bench
from builder.stack import stacks

# Seconds that a user measured in 2017 on another computer, by BLAS and libm. The user's program
# trained the same kind of model. The seconds of an op, such as Elemwise, are its total in the
# gradient's scan.
MEASURED_IN_2017 = {
    ("numpy", "system"): {
        "calls": 55.92, "compile": 934.3, "optimizer": 883.4, "grad_of_scan": 48.29,
        "Elemwise": 8.23, "Dot22": 5.23, "Split": 4.99, "check_blas": 11.99,
    },
    ("mkl", "system"): {
        "calls": 49.39, "compile": 1077.7, "optimizer": 1013.9, "grad_of_scan": 43.61,
        "Elemwise": 9.69, "Dot22": 2.93, "Split": 5.52, "check_blas": 11.32,
    },
    ("mkl", "amdlibm"): {
        "calls": 48.98, "compile": 991.9, "optimizer": 934.0, "grad_of_scan": 43.27,
        "Elemwise": 9.02, "Dot22": 2.96, "Split": 5.76,
    },
}  # fmt: skip
# Maps a size to the number of rounds after the first round. The first round compiles. A round of
# the full size takes hours.
ROUNDS = {"small": 3, "full": 0}
# The keys of a row that a later, faster round replaces.
REPEATED = ("calls", "grad_of_scan", "ops", "check_blas")
# The keys of a row whose values are seconds.
TIMES = ("calls", "compile", "optimizer", "grad_of_scan", "check_blas")
# The parts of a bar in the chart. The first four are in the gradient's scan.
PARTS = ("Elemwise", "products", "Split", "other ops of the gradient's scan", "other")
# The ops that call BLAS. Their seconds are the part "products".
PRODUCTS = ("Dot22", "Gemm", "Gemv", "Ger")

# The JSON that bench/training_of_2017.py prints; its docstring explains the keys.
Row = dict[str, Any]


def list_old_stacks() -> list[str]:
    """List the names of the stacks of Theano 0.8.2."""
    return [stack.name for stack in stacks.load_all() if stack.theano == "0.8.2"]


def measure(environments: Sequence[str], size: str, calls: int) -> Path:
    """Measure environments; write the report and its chart, and print the table.

    Args:
        environments: the names of built stacks; the first is the baseline.
        size: the size of the Neural Turing Machine: ``small`` or ``full``.
        calls: the number of calls to measure.

    Returns:
        The report's file.

    Raises:
        CommandFailed: the training step does not compile or run.
        VerifyFailed: environments compute different losses.
    """
    file = paths.REPORTS / f"bench-2017-{size}.json"
    rows: dict[str, Row] = {}

    def compile_and_measure(name: str) -> Row:
        return measure_one(name, size, calls, empty=True)

    with ThreadPoolExecutor(count_cpus()) as pool:
        results = pool.map(compile_and_measure, environments)
        for name, row in zip(environments, results, strict=True):
            rows[name] = row
            report.write({**bench.start_document(), "size": size, "rows": rows}, file)
            progress.say(f"{name}: {row['calls']:.2f} s in {calls} calls")
    for name in [*environments] * ROUNDS[size]:
        repeated = measure_one(name, size, calls, empty=False)
        if repeated["calls"] < rows[name]["calls"]:
            rows[name] |= {key: repeated[key] for key in REPEATED}
    report.write({**bench.start_document(), "size": size, "rows": rows}, file)
    progress.print_table(*make_table(rows))
    image = file.with_suffix(".svg")
    chart = bar_chart.draw_stacked_bars(f"Seconds in {calls} calls", PARTS, make_bars(rows))
    image.write_text(chart, encoding="utf-8")
    progress.say(f"{file}\n{image}")
    if disagreements := find_disagreements(rows):
        raise VerifyFailed(
            "environments compute different losses:\n  " + "\n  ".join(disagreements)
        )
    return file


def measure_one(environment: str, size: str, calls: int, *, empty: bool) -> Row:
    """Run ``bench/training_of_2017.py`` in an environment; return its row of the report.

    Args:
        environment: the name of a built stack.
        size: ``small`` or ``full``.
        calls: the number of calls to measure.
        empty: whether to empty the compile cache first.
    """
    # The processes of all environments lock this file, so that one process at a time makes calls.
    lock = paths.BENCHES / "2017.turns"
    command = ("-B", paths.BENCH / "training_of_2017.py", size, str(calls), lock)
    return bench.run_measurement(environment, "2017", *command, empty=empty)


def collect_seconds(row: Row) -> dict[str, float]:
    """Return all seconds of a row: TIMES and the seconds of ops, by name."""
    times = {name: row[name] for name in TIMES}
    return times | {op: spent for op, (spent, _) in row["ops"].items()}


def make_table(rows: Mapping[str, Row]) -> tuple[list[str], list[list[str]]]:
    """Format the report as a table with a line for each time and a column for each environment.

    A cell such as ``8.10 C 0.152 (0.164)`` contains the seconds, whether the op runs in C or Python
    (``Py``), the ratio to the baseline's seconds, and the ratio in the user's measurements of 2017.

    Returns:
        The header and the lines.
    """
    baseline = collect_seconds(next(iter(rows.values())))
    names = dict.fromkeys(name for row in rows.values() for name in collect_seconds(row))
    lines = [
        [
            name,
            *(_format_cell(name, row, baseline, environment) for environment, row in rows.items()),
        ]
        for name in names
    ]
    return ["seconds", *rows], lines


def _format_cell(name: str, row: Row, baseline: Mapping[str, float], environment: str) -> str:
    seconds = collect_seconds(row).get(name)
    if seconds is None:
        return "-"
    kind = f" {row['ops'][name][1]}" if name in row["ops"] else ""
    ratio = f" {seconds / baseline[name]:.3f}" if baseline.get(name) else ""
    seconds_in_2017 = _find_seconds_of_2017(environment).get(name)
    ratio_in_2017 = (
        f" ({seconds_in_2017 / MEASURED_IN_2017['numpy', 'system'][name]:.3f})"
        if seconds_in_2017
        else ""
    )
    return f"{seconds:.2f}{kind}{ratio}{ratio_in_2017}"


def _find_seconds_of_2017(environment: str) -> Mapping[str, float]:
    """Return the user's seconds of 2017 for a stack's BLAS and libm; {} unless Theano is 0.8.2."""
    stack = stacks.load(environment)
    return (
        MEASURED_IN_2017.get((stack.blas, stack.libm), {})
        if environment in list_old_stacks()
        else {}
    )


def make_bars(rows: Mapping[str, Row]) -> dict[str, dict[str, dict[str, float]]]:
    """Return one group of bars for the chart: the seconds of each of PARTS, by environment."""
    return {
        "Neural Turing Machine": {
            name: _split_parts(collect_seconds(row)) for name, row in rows.items()
        }
    }


def _split_parts(times: Mapping[str, float]) -> dict[str, float]:
    """Divide the seconds of the calls among PARTS."""
    elemwise, split = times.get("Elemwise", 0.0), times.get("Split", 0.0)
    products = sum(times.get(op, 0.0) for op in PRODUCTS)
    other_in_scan = times["grad_of_scan"] - elemwise - split - products
    values = (elemwise, products, split, other_in_scan, times["calls"] - times["grad_of_scan"])
    return dict(zip(PARTS, values, strict=True))


def find_disagreements(rows: Mapping[str, Row]) -> list[str]:
    """Describe the environments whose losses differ from the first environment's losses."""
    expected = next(iter(rows.values()))["losses"]
    return [
        f"{name}: {row['losses']}, not {expected}"
        for name, row in rows.items()
        if not bench.losses_agree(row["losses"], expected)
    ]
