"""Test the times of calls: the shortest time of all rounds, the table and the means."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from builder import report
from builder.common import paths
from builder.measure import call_time
from builder.measure.call_time import Seconds

BEST: Seconds = {
    "stock": {
        "check_blas float64 2000": 1.0,
        "ntm-small": 0.02,
        "exp float32 1e+05": 4e-4,
        "log float32 1e+05": 9e-4,
        "exp float64 1e+05": 6e-4,
    },
    "mkl": {
        "check_blas float64 2000": 0.5,
        "ntm-small": 0.01,
        "exp float32 1e+05": 1e-4,
        "log float32 1e+05": 1e-4,
        "exp float64 1e+05": 2e-4,
    },
}


class FakeConversation:
    """A fake measuring process; ``seconds`` are its answers, one for each round."""

    def __init__(self, seconds: Sequence[float]) -> None:
        self.seconds = list(seconds)

    def ask(self, line: str) -> str:
        return json.dumps({"exp float32 1e+05": self.seconds.pop(0)})

    def __enter__(self) -> FakeConversation:
        return self

    def __exit__(self, *_: object) -> None:
        assert not self.seconds


def test_the_shortest_time_of_all_rounds_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversations = {
        "stock": FakeConversation([9.0, 4.0, 5.0]),
        "mkl": FakeConversation([2.0, 3.0, 1.0]),
    }
    graphs: list[Sequence[str]] = []

    def start(name: str, sizes: Sequence[str]) -> FakeConversation:
        graphs.append(sizes)
        return conversations[name]

    monkeypatch.setattr(call_time, "start_process", start)
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    document = report.read(call_time.measure(["stock", "mkl"], quick=True))
    assert document["seconds"] == {
        "stock": {"exp float32 1e+05": 4.0},
        "mkl": {"exp float32 1e+05": 1.0},
    }
    assert graphs == [["ntm-small"]] * 2


def test_the_table_has_units_and_the_speed_up_over_stock() -> None:
    head, lines = call_time.make_table(BEST)
    assert head == ["call", "stock", "mkl"]
    assert [cell.split() for cell in lines[0]] == [
        ["check_blas", "float64", "2000"],
        ["16.0", "GFLOP/s", "1.00x"],
        ["32.0", "GFLOP/s", "2.00x"],
    ]
    assert [cell.split() for cell in lines[2][1:]] == [
        ["400.0", "us", "1.00x"],
        ["100.0", "us", "4.00x"],
    ]


def test_geometric_means_are_of_elementwise_calls_only() -> None:
    _, lines = call_time.make_table(BEST)
    assert lines[len(BEST["stock"]) :] == [
        ["float32 1e+05, geometric mean", "1.00x", "6.00x"],
        ["float64 1e+05, geometric mean", "1.00x", "3.00x"],
    ]
