"""Test the errors, exit statuses, CPU times and priorities of subprocesses."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from builder.common import processes
from builder.common.errors import CommandFailed


def replace_run(monkeypatch: pytest.MonkeyPatch, status: int, output: str) -> None:
    """Replace ``subprocess.run``: each command ends with this exit code and output."""
    monkeypatch.setattr(
        subprocess, "run", lambda argv, **_: subprocess.CompletedProcess(argv, status, output)
    )


def test_the_error_of_a_failed_command_has_the_command_and_its_last_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace_run(monkeypatch, 3, "first\n" * 50 + "the reason\n")
    with pytest.raises(CommandFailed) as failure:
        processes.run(["make", Path("all")])
    assert "make all: exit status 3" in str(failure.value)
    assert "the reason" in str(failure.value)
    assert str(failure.value).count("first") < 20


def test_without_check_the_exit_status_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_run(monkeypatch, 3, "output")
    assert processes.run(["make"], check=False) == processes.Finished(3, "output")


def test_a_missing_command_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_not_found(*_: object, **__: object) -> None:
        raise FileNotFoundError("no such file")

    monkeypatch.setattr(subprocess, "run", raise_not_found)
    with pytest.raises(CommandFailed, match="nothing-here: cannot be started"):
        processes.run(["nothing-here"])


def test_the_cpu_seconds_of_a_session_are_measured() -> None:
    # No session has the ID 999,999,999.
    session = os.getsid(0)
    seconds = processes.measure_cpu_seconds([session, 999_999_999])
    assert seconds[session] > 0
    assert seconds[999_999_999] == 0


def test_a_permission_error_of_setpriority_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int, int]] = []

    def refuse(*arguments: int) -> None:
        calls.append(arguments)  # type: ignore[arg-type]
        raise PermissionError("no")

    monkeypatch.setattr(os, "setpriority", refuse)
    monkeypatch.setattr(os, "getpriority", lambda *_: 12)
    processes.lower_priority(999_999_999, 10)
    assert calls == [(os.PRIO_PGRP, 999_999_999, 19)]


def test_variables_that_select_the_kernels_of_another_processor_are_removed() -> None:
    environ = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "2"}
    assert processes.select_own_kernels(environ) == {"OPENBLAS_NUM_THREADS": "2"}
