"""The table that this project began with, measured again: on the stacks of 2017, and others.

Environments compile ``bench/training_of_2017.py`` on an empty cache, one for each processor at
once, and call it alone, in turn; of a small machine the calls are repeated, for a busy machine
slows one environment and not the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from builder import report
from builder.common import paths, progress
from builder.common.errors import VerifyFailed
from builder.common.processes import cpus
from builder.measure import bar_chart, bench
from builder.stack import stacks

# What a user measured in 2017, by BLAS and libm: seconds, on another machine and another program of
# the same kind. Of an op, those in the gradient's scan.
SEED = {
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
# How often the calls are repeated, with what is compiled; in full size that takes hours more.
ROUNDS = {"small": 3, "full": 0}
REPEATED = ("calls", "grad_of_scan", "ops", "check_blas")
TIMES = ("calls", "compile", "optimizer", "grad_of_scan", "check_blas")
PARTS = ("Elemwise", "products", "Split", "rest of the gradient's scan", "rest")
PRODUCTS = ("Dot22", "Gemm", "Gemv", "Ger")

Row = dict[str, Any]


def old_stacks() -> list[str]:
    """The stacks of Theano 0.8.2."""
    return [stack.name for stack in stacks.load_all() if stack.theano == "0.8.2"]


def measure(environments: Sequence[str], size: str, calls: int) -> Path:
    """Measure environments; write the report and its picture, and print the table.

    Args:
        environments: the first is what the others are compared with.
        size: of the machine: ``small`` or ``full``.

    Returns:
        The report's file.

    Raises:
        CommandFailed: the training step does not compile.
        VerifyFailed: environments compute different losses.
    """
    file = paths.REPORTS / f"bench-2017-{size}.json"
    rows: dict[str, Row] = {}

    def first(name: str) -> Row:
        return measure_one(name, size, calls, empty=True)

    with ThreadPoolExecutor(cpus()) as pool:
        for name, row in zip(environments, pool.map(first, environments), strict=True):
            rows[name] = row
            report.write({**bench.document(), "size": size, "rows": rows}, file)
            progress.say(f"{name}: {row['calls']:.2f} s in {calls} calls")
    for name in [*environments] * ROUNDS[size]:
        again = measure_one(name, size, calls, empty=False)
        if again["calls"] < rows[name]["calls"]:
            rows[name] |= {key: again[key] for key in REPEATED}
    report.write({**bench.document(), "size": size, "rows": rows}, file)
    progress.table(*table(rows))
    image = file.with_suffix(".svg")
    drawn = bar_chart.stacked_bars(f"Seconds in {calls} calls", PARTS, bars(rows))
    image.write_text(drawn, encoding="utf-8")
    progress.say(f"{file}\n{image}")
    if wrong := disagreements(rows):
        raise VerifyFailed("environments compute different losses:\n  " + "\n  ".join(wrong))
    return file


def measure_one(environment: str, size: str, calls: int, *, empty: bool) -> Row:
    """Run the training step in an environment; its answer, and when it ran.

    Args:
        empty: compile on an empty cache.
    """
    turns = paths.BENCHES / "2017.turns"
    command = ("-B", paths.BENCH / "training_of_2017.py", size, str(calls), turns)
    return bench.answer(environment, "2017", *command, empty=empty)


def seconds(row: Row) -> dict[str, float]:
    """The times of a row, those of ops among them."""
    times = {name: row[name] for name in TIMES}
    return times | {op: spent for op, (spent, _) in row["ops"].items()}


def table(rows: Mapping[str, Row]) -> tuple[list[str], list[list[str]]]:
    """The report as a table: seconds, ratios to the first row, and those of 2017 in brackets."""
    first = seconds(next(iter(rows.values())))
    names = dict.fromkeys(name for row in rows.values() for name in seconds(row))
    lines = [
        [name, *(_cell(name, row, first, each) for each, row in rows.items())] for name in names
    ]
    return ["seconds", *rows], lines


def _cell(name: str, row: Row, first: Mapping[str, float], environment: str) -> str:
    spent = seconds(row).get(name)
    if spent is None:
        return "-"
    kind = f" {row['ops'][name][1]}" if name in row["ops"] else ""
    ratio = f" {spent / first[name]:.3f}" if first.get(name) else ""
    then = _then(environment).get(name)
    told = f" ({then / SEED['numpy', 'system'][name]:.3f})" if then else ""
    return f"{spent:.2f}{kind}{ratio}{told}"


def _then(environment: str) -> Mapping[str, float]:
    """What was measured in 2017 on a stack's BLAS and libm; nothing, if it is another Theano's."""
    stack = stacks.load(environment)
    return SEED.get((stack.blas, stack.libm), {}) if environment in old_stacks() else {}


def bars(rows: Mapping[str, Row]) -> dict[str, dict[str, dict[str, float]]]:
    """What the picture shows: the parts of the calls' time, by environment."""
    return {"Neural Turing Machine": {name: _parts(seconds(row)) for name, row in rows.items()}}


def _parts(times: Mapping[str, float]) -> dict[str, float]:
    elemwise, split = times.get("Elemwise", 0.0), times.get("Split", 0.0)
    products = sum(times.get(op, 0.0) for op in PRODUCTS)
    rest = times["grad_of_scan"] - elemwise - split - products
    values = (elemwise, products, split, rest, times["calls"] - times["grad_of_scan"])
    return dict(zip(PARTS, values, strict=True))


def disagreements(rows: Mapping[str, Row]) -> list[str]:
    """The environments whose losses are not those of the first."""
    expected = next(iter(rows.values()))["losses"]
    return [
        f"{name}: {row['losses']}, not {expected}"
        for name, row in rows.items()
        if not bench.agree(row["losses"], expected)
    ]
