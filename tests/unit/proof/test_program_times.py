"""Test the measured times of programs' tests, in a stack and on stock Theano."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builder.common import paths
from builder.common.errors import CommandFailed
from builder.measure.references import PROGRAMS
from builder.proof import program_times
from builder.proof.program_times import CACHES
from builder.proof.pytest_runs import Run

# The packages of Keras that stock Theano borrows from a stack's environment.
KERAS_PACKAGES = {*program_times.PROGRAM_PACKAGES["keras"], "Keras-2.3.1.dist-info"}


@pytest.fixture
def outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Replace pytest runs; return the outcome that each run reports for its one test.

    A test may change the outcome. The fixture also creates the environment openblas+keras with
    empty packages.
    """
    monkeypatch.setattr(paths, "BENCHES", tmp_path / "bench")
    monkeypatch.setattr(program_times.linked_packages, "link_packages", lambda *_: None)
    reported: dict[str, Any] = {"outcome": "passed", "seconds": 2.0, "reason": ""}

    def run(self: Run, parts: list[Any]) -> None:
        (part,) = parts
        test = f"{part.file}::test_a"
        lines = [{"collected": [test]}, {"id": test, **reported}]
        file = program_times.pytest_events.get_event_file(self.directory, part)
        file.parent.mkdir(parents=True)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    monkeypatch.setattr(Run, "run", run)
    site = tmp_path / "openblas+keras" / "lib" / "python3.11" / "site-packages"
    for name in (*KERAS_PACKAGES, "numpy", "numpy-1.26.4.dist-info"):
        (site / name).mkdir(parents=True)
    return reported


def test_stock_theano_runs_the_stacks_copy_of_a_program(
    outcome: dict[str, Any], tmp_path: Path
) -> None:
    lender = tmp_path / "openblas+keras"
    for prefix in (tmp_path / PROGRAMS, lender):
        cache_directory = paths.BENCHES / prefix.name / "program-keras" / "compiledir"
        for cache in CACHES:
            result = program_times._run("keras", prefix, lender, cache)
            assert result == {"test_keras.py::test_a": 2.0}
            assert cache_directory.exists() == (cache == "warm")
            cache_directory.mkdir(exist_ok=True)
        lent = {entry.name for entry in (cache_directory.parent / "lent").iterdir()}
        assert lent == (set() if prefix == lender else KERAS_PACKAGES)


def test_a_failed_test_is_reported(
    outcome: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome |= {"outcome": "failed", "reason": "AssertionError: 1"}
    lender = tmp_path / "openblas+keras"
    with pytest.raises(CommandFailed, match=r"test_keras.py::test_a: AssertionError: 1"):
        program_times._run("keras", lender, lender, "empty")
    assert program_times._run("keras", tmp_path / PROGRAMS, lender, "empty") == {}
    assert "test_keras.py::test_a: AssertionError: 1" in capsys.readouterr().out


def test_a_skipped_test_is_neither_timed_nor_failed(
    outcome: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome |= {"outcome": "skipped", "reason": "Skipped: the test is for another version"}
    lender = tmp_path / "openblas+keras"
    for prefix in (lender, tmp_path / PROGRAMS):
        assert program_times._run("keras", prefix, lender, "empty") == {}
    assert capsys.readouterr().out == ""
    only_stock = {PROGRAMS: {"empty": 9.0, "warm": 3.0}}
    table = program_times.make_table({"test_a": only_stock}, "mkl")
    assert table == [["test_a", "skipped", "skipped"]]


def test_a_row_has_stocks_time_the_stacks_time_and_the_speed_up() -> None:
    only_stack = {"mkl": {"empty": 3.0, "warm": 0.0}}
    on_both = {PROGRAMS: {"empty": 9.0, "warm": 3.0}, **only_stack}
    assert program_times.make_table({"test_a": on_both, "test_b": only_stack}, "mkl") == [
        ["test_a", "9.0 / 3.0 = 3.0x", "3.0 / 0.0 = 300.0x"],
        ["test_b", "fails / 3.0", "fails / 0.0"],
    ]
    once = {PROGRAMS: {"empty": 9.0}, **only_stack}
    assert program_times.make_table({"test_c": once}, "mkl") == [
        ["test_c", "9.0 / 3.0 = 3.0x", "fails / 0.0"]
    ]
