"""Test the benchmark of 2017: its runs, losses, table and chart; the runs are fake."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import VerifyFailed
from builder.common.processes import Finished
from builder.measure import bench, benchmark_of_2017
from builder.measure.benchmark_of_2017 import Row
from builder.stack import stacks


def make_row(calls: float = 10.0, loss: float = 0.5) -> Row:
    """Make a measurement whose calls take ``calls`` seconds and whose first loss is ``loss``."""
    return {
        "calls": calls,
        "compile": 40.0,
        "optimizer": 30.0,
        "grad_of_scan": calls * 0.75,
        "ops": {"Dot22": [1.0, "Py"], "Elemwise": [calls / 4, "C"]},
        "losses": [loss, 0.25],
        "check_blas": 2.0,
        "ldflags": "",
    }


def find_stack(blas: str, libm: str) -> str:
    """Return the name of the stack of 2017 with this BLAS and libm."""
    loaded_stacks = map(stacks.load, benchmark_of_2017.list_old_stacks())
    return next(stack.name for stack in loaded_stacks if (stack.blas, stack.libm) == (blas, libm))


def test_each_measurement_of_2017_has_a_stack() -> None:
    assert {find_stack(*axes) for axes in benchmark_of_2017.MEASURED_IN_2017} < set(
        benchmark_of_2017.list_old_stacks()
    )
    assert "openblas" not in benchmark_of_2017.list_old_stacks()


def test_a_ratio_is_followed_by_the_ratio_of_2017() -> None:
    first, second = find_stack("numpy", "system"), find_stack("mkl", "system")
    head, lines = benchmark_of_2017.make_table(
        {first: make_row(), second: make_row(9.0), "openblas": make_row(2.0)}
    )
    assert head == ["seconds", first, second, "openblas"]
    cells = {line[0]: line[1:] for line in lines}
    assert cells["calls"] == ["10.00 1.000 (1.000)", "9.00 0.900 (0.883)", "2.00 0.200"]
    assert cells["Dot22"][1] == "1.00 Py 1.000 (0.560)"
    faster = make_row(2.0)
    faster["ops"] = {"Gemv": [0.5, "C"]}
    _, lines = benchmark_of_2017.make_table({first: make_row(), "openblas": faster})
    cells = {line[0]: line[1:] for line in lines}
    assert cells["Dot22"][1] == "-"
    assert cells["Gemv"] == ["-", "0.50 C"]


def test_the_phases_of_the_chart_sum_to_the_calls() -> None:
    [bars] = benchmark_of_2017.make_bars({"openblas": make_row()}).values()
    assert sum(bars["openblas"].values()) == pytest.approx(10.0)
    assert bars["openblas"]["products"] == 1.0


def test_different_losses_are_an_error_after_the_report_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    monkeypatch.setattr(
        benchmark_of_2017,
        "measure_one",
        lambda name, *_, **__: make_row(loss=0.6 if name == "mkl" else 0.5),
    )
    assert benchmark_of_2017.measure(["openblas", "cuda"], "small", 100).exists()
    with pytest.raises(VerifyFailed, match=r"mkl: \[0\.6, 0\.25\], not \[0\.5"):
        benchmark_of_2017.measure(["openblas", "mkl"], "small", 100)
    document = json.loads((tmp_path / "bench-2017-small.json").read_text())
    assert set(document["rows"]) == {"openblas", "mkl"}
    assert (tmp_path / "bench-2017-small.svg").exists()


def test_the_fastest_of_four_runs_and_the_first_compilation_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = {"openblas": [10.0, 12.0, 8.0, 9.0], "mkl": [5.0, 6.0, 7.0, 8.0]}
    measurements: list[tuple[str, bool]] = []
    barrier = threading.Barrier(2, timeout=10)

    def measure_one(name: str, *_: object, empty: bool) -> Row:
        measurements.append((name, empty))
        if empty:
            barrier.wait()
        return {**make_row(pending[name].pop(0)), "compile": 40.0 if empty else 1.0}

    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    monkeypatch.setattr(benchmark_of_2017, "measure_one", measure_one)
    monkeypatch.setattr(benchmark_of_2017, "count_cpus", lambda: 2)
    file = benchmark_of_2017.measure(["openblas", "mkl"], "small", 100)
    # With two CPUs, both environments compile at the same time, in either order.
    assert set(measurements[:2]) == {("openblas", True), ("mkl", True)}
    assert measurements[2:] == [("openblas", False), ("mkl", False)] * 3
    rows = json.loads(file.read_text())["rows"]
    assert {name: (row["calls"], row["compile"]) for name, row in rows.items()} == {
        "openblas": (8.0, 40.0),
        "mkl": (5.0, 40.0),
    }


def test_a_measurement_starts_with_an_empty_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "BENCHES", tmp_path)
    compiledir = tmp_path / "openblas" / "2017" / ".theano"
    compiledir.mkdir(parents=True)

    def run(command: list[object], **_: object) -> Finished:
        assert command[-3:] == ["small", "7", tmp_path / "2017.turns"]
        assert not compiledir.exists()
        return Finished(0, "a warning\n" + json.dumps(make_row()))

    monkeypatch.setattr(bench, "run", run)
    assert benchmark_of_2017.measure_one("openblas", "small", 7, empty=True)["calls"] == 10.0
