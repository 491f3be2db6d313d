from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from builder.common import processes
from builder.common.errors import CommandFailed


def finished(monkeypatch: pytest.MonkeyPatch, status: int, output: str) -> None:
    monkeypatch.setattr(
        subprocess, "run", lambda argv, **_: subprocess.CompletedProcess(argv, status, output)
    )


def test_a_failed_command_shows_itself_and_its_last_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    finished(monkeypatch, 3, "first\n" * 50 + "the reason\n")
    with pytest.raises(CommandFailed) as failure:
        processes.run(["make", Path("all")])
    assert "make all: exit status 3" in str(failure.value)
    assert "the reason" in str(failure.value)
    assert str(failure.value).count("first") < 20


def test_a_status_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    finished(monkeypatch, 3, "output")
    assert processes.run(["make"], check=False) == processes.Finished(3, "output")


def test_a_command_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError("no such file")

    monkeypatch.setattr(subprocess, "run", missing)
    with pytest.raises(CommandFailed, match="nothing-here: cannot be started"):
        processes.run(["nothing-here"])


def test_the_seconds_of_a_session_are_those_of_all_its_processes() -> None:
    own = os.getsid(0)
    found = processes.cpu_seconds([own, 999_999_999])
    assert found[own] > 0
    assert found[999_999_999] == 0


def test_giving_way_is_for_those_who_may(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int, int]] = []

    def refuse(*arguments: int) -> None:
        given.append(arguments)  # type: ignore[arg-type]
        raise PermissionError("no")

    monkeypatch.setattr(os, "setpriority", refuse)
    monkeypatch.setattr(os, "getpriority", lambda *_: 12)
    processes.give_way(999_999_999, 10)
    assert given == [(os.PRIO_PGRP, 999_999_999, 19)]
