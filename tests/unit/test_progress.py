from __future__ import annotations

from pathlib import Path

import pytest

from builder import progress


def test_durations() -> None:
    assert progress.seconds(61.9) == "1:01"


def test_the_last_line_of_a_long_log(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("line\n" * 10_000 + "  [12/99] cc -c y.c  \n\n")
    assert progress.last_line(log) == "[12/99] cc -c y.c"
    assert progress.last_line(tmp_path / "none") == ""


def test_a_table_is_printed_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    cells = ["a" * 70, "b" * 70]
    progress.table(["first", "second"], [cells])
    assert capsys.readouterr().out.splitlines()[1].split() == cells


def test_plain_lines_without_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = progress.Progress(2)
    with progress.shown(table):
        table.started("zlib", tmp_path / "zlib.log")
        table.finished("zlib", 3.2)
    assert capsys.readouterr().out.splitlines() == [
        "building zlib",
        "built    zlib (1/2, 0:00, 3 CPU s)",
    ]
