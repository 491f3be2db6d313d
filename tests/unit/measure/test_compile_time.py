"""Test the measurement of compile times: order of runs, losses, rows and tables; runs are fake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builder import report
from builder.common import paths
from builder.common.errors import CommandFailed, UsageError, VerifyFailed
from builder.common.processes import Finished
from builder.measure import bench, compile_time
from builder.measure.compile_time import Row


def make_row(seconds: float = 1.0) -> Row:
    """Make a measurement whose phase "graph" takes ``seconds``."""
    return {
        "phases": {"import": 0.5, "graph": seconds, "first call": 0.25},
        "cpu": 2.0,
        "peak_memory": 3_000_000,
        "compilers": 4,
        "losses": [0.5, 0.25, 0.125],
        "call": 0.001,
        "bound": {"products": seconds / 1000, "bytes": 0.0005},
        "load": 0.0,
        "when": "2020-07-28T00:00:00+00:00",
        "provenance": {"commit": "", "packages": {}, "runs": 1},
    }


@pytest.fixture
def measurements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """Replace measurements; return (graph, cache, environment) of each measurement."""
    calls: list[tuple[str, str, str]] = []

    def measure(environment: str, graph: str, cache: str, _: str) -> Row:
        calls.append((graph, cache, environment))
        return make_row(len(calls))

    monkeypatch.setattr(compile_time, "measure_one", measure)
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    return calls


def test_environments_alternate(measurements: list[tuple[str, str, str]]) -> None:
    compile_time.measure(["stock", "openblas"], ["mlp"], quick=False)
    assert measurements == [
        ("mlp", "empty", "stock"),
        ("mlp", "empty", "openblas"),
        ("mlp", "warm", "stock"),
        ("mlp", "warm", "openblas"),
    ]


def test_runs_alternate_and_their_medians_are_reported(
    measurements: list[tuple[str, str, str]],
) -> None:
    file = compile_time.measure(["openblas", "jax"], ["mlp"], quick=False, runs=3)
    assert measurements[:5] == [
        ("mlp", "empty", "openblas"),
        ("mlp", "empty", "jax"),
        ("mlp", "warm", "openblas"),
        ("mlp", "warm", "jax"),
        ("mlp", "empty", "openblas"),
    ]
    row = report.read(file)["rows"]["mlp"]["openblas"]["empty"]
    # These are measurements 1, 5 and 9. In measurement N, the phase "graph" takes N seconds.
    assert row["totals"] == [1.75, 5.75, 9.75]
    assert compile_time.compute_total_seconds(row) == 5.75
    assert row["calls"] == [0.001, 0.001, 0.001]
    assert row["provenance"]["runs"] == 3


def test_quick_does_not_measure_stock_theano_on_slow_graphs(
    measurements: list[tuple[str, str, str]],
) -> None:
    compile_time.measure(["stock", "openblas"], ["ntm"], quick=True)
    assert {name for _, _, name in measurements} == {"openblas"}


def test_a_graph_that_a_peer_cannot_run_is_omitted(
    measurements: list[tuple[str, str, str]],
) -> None:
    compile_time.measure(["pytensor"], ["conv", "mlp"], quick=False)
    assert {graph for graph, _, _ in measurements} == {"mlp"}


def test_only_stock_theano_may_fail(
    measurements: list[tuple[str, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(environment: str, *_: str) -> Row:
        if environment == failing:
            raise CommandFailed("exit status 1\n  ImportError: dgemm_")
        return make_row()

    monkeypatch.setattr(compile_time, "measure_one", fail)
    failing = "stock"
    document = report.read(compile_time.measure(["stock", "jax"], ["mlp"], quick=False))
    assert set(document["rows"]["mlp"]) == {"jax"}
    assert "mlp warm stock failed: ImportError: dgemm_" in capsys.readouterr().out
    failing = "jax"
    with pytest.raises(CommandFailed):
        compile_time.measure(["stock", "jax"], ["mlp"], quick=False)


def test_a_measurement_replaces_only_its_own_row(measurements: list[tuple[str, str, str]]) -> None:
    file = compile_time.measure(["stock"], ["mlp"], quick=False)
    compile_time.measure(["openblas"], ["mlp", "conv"], quick=False)
    compile_time.measure(["openblas"], ["mlp"], quick=False)
    rows = report.read(file)["rows"]
    assert rows["mlp"]["stock"]["empty"] == make_row(1)
    assert rows["mlp"]["openblas"]["empty"] == make_row(7)
    assert rows["conv"]["openblas"]["warm"] == make_row(6)


def test_rows_of_another_machine_are_dropped(measurements: list[tuple[str, str, str]]) -> None:
    file = compile_time.measure(["stock"], ["mlp"], quick=False)
    report.write({**report.read(file), "machine": {"processor": "another", "cpus": 64}}, file)
    compile_time.measure(["openblas"], ["mlp"], quick=False)
    assert list(report.read(file)["rows"]["mlp"]) == ["openblas"]


def test_the_picture_and_the_table_show_every_row(measurements: list[tuple[str, str, str]]) -> None:
    file = compile_time.measure(["stock", "openblas"], ["mlp", "tiny"], quick=False)
    drawn = file.with_suffix(".svg").read_text("utf-8")
    assert drawn.count("cache</text>") == 8
    head, lines = compile_time.make_table(report.read(file)["rows"])
    assert len(lines) == 8
    assert all(len(line) == len(head) for line in lines)
    assert lines[0][:5] == ["mlp", "empty", "stock", "1.8", "2.0"]
    # All rows show the lowest bound of the graph, which the first measurement has.
    assert [line[-2:] for line in lines[:4]] == [["1.00", "1.50"]] * 4


@pytest.mark.parametrize("graph", ["cnn", "conv7", "200", ""])
def test_an_unknown_graph_is_refused(graph: str) -> None:
    with pytest.raises(UsageError, match=f"unknown graph '{graph}'"):
        compile_time.measure(["stock"], [graph], quick=False)


def test_graphs_of_other_sizes_come_last_in_the_table(
    measurements: list[tuple[str, str, str]],
) -> None:
    file = compile_time.measure(["stock", "jax"], ["mlp200", "mlp40", "tiny"], quick=False)
    assert ("mlp200", "empty", "stock") not in measurements
    _, lines = compile_time.make_table(report.read(file)["rows"])
    assert [line[0] for line in lines] == ["tiny"] * 4 + ["mlp40"] * 2 + ["mlp200"] * 2
    assert compile_time.describe_graph("mlp200") == "200 dense layers"


def test_a_measurement_with_an_empty_cache_gets_a_new_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "BENCHES", tmp_path)
    monkeypatch.setenv("THEANO_FLAGS", "optimizer=None")
    started: list[tuple[list[str], bool]] = []

    def run(argv: list[object], *, env: dict[str, str], cwd: Path) -> Finished:
        assert env["HOME"] == str(cwd)
        assert "THEANO_FLAGS" not in env
        has_cache = (cwd / "compiled").exists()
        (cwd / "compiled").touch()
        started.append(([str(part) for part in argv[-3:]], has_cache))
        return Finished(0, "a warning\n" + json.dumps(make_row()) + "\n")

    monkeypatch.setattr(bench, "run", run)
    for cache in ("empty", "warm", "empty"):
        assert (
            compile_time.measure_one("stock", "mlp", cache, "float64")["phases"]
            == make_row()["phases"]
        )
    compile_time.measure_one("jax", "mlp", "empty", "float32")
    assert started == [
        (["theano", "mlp", "float64"], False),
        (["theano", "mlp", "float64"], True),
        (["theano", "mlp", "float64"], False),
        (["jax", "mlp", "float32"], False),
    ]


def test_different_losses_are_an_error(measurements: list[tuple[str, str, str]]) -> None:
    file = compile_time.measure(["stock", "jax"], ["mlp"], quick=False)
    document = report.read(file)
    assert not compile_time.find_disagreements(document["rows"])
    document["rows"]["mlp"]["jax"]["warm"]["losses"][2] *= 1 + 2e-6
    report.write(document, file)
    with pytest.raises(VerifyFailed, match=r"mlp on jax \(warm cache\)"):
        compile_time.measure(["stock"], ["tiny"], quick=False)
