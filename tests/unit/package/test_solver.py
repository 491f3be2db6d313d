"""Test the results and errors of the solver; the subprocess is fake."""

from __future__ import annotations

import pytest

from builder.common.errors import CommandFailed
from builder.common.processes import Finished
from builder.package import solver


def test_the_answer_is_the_last_line_of_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "run", lambda *_, **__: Finished(0, 'a warning\n["a", "b"]\n'))
    assert solver.call("solve", channel="/c", specs=["a"]) == ["a", "b"]


def test_a_failure_has_the_message_of_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "run", lambda *_, **__: Finished(1, "SolverError: no candidates"))
    with pytest.raises(CommandFailed, match="no candidates"):
        solver.call("solve", channel="/c", specs=["a"])


def test_the_error_of_a_crash_without_output_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(solver, "run", lambda *_, **__: Finished(-11, ""))
    with pytest.raises(CommandFailed, match="index: ended with status -11"):
        solver.call("index", channel="/c")
