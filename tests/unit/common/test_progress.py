from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from builder.common import progress


def test_durations() -> None:
    assert progress.seconds(61.9) == "1:01"


def test_what_is_left_is_as_slow_as_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builder.common.progress.time.monotonic", lambda: 160.0)
    assert progress.left(1, 4, 100.0) == ", about 3 min left"
    assert progress.left(0, 4, 100.0) == progress.left(4, 4, 100.0) == ""


def test_the_last_line_of_a_long_log(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("line\n" * 10_000 + "  [12/99] cc -c y.c  \n\n")
    assert progress.last_line(log) == "[12/99] cc -c y.c"
    assert progress.last_line(tmp_path / "none") == ""


def test_a_table_is_printed_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    cells = ["a" * 70, "b" * 70]
    progress.table(["first", "second"], [cells])
    assert capsys.readouterr().out.splitlines()[1].split() == cells


@pytest.fixture
def level() -> Iterator[Callable[[progress.Level], None]]:
    yield progress.set_level
    progress.set_level(progress.Level.NORMAL)


def test_plain_lines_without_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # It makes no terminal of what is none.
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress, "console", Console(highlight=False, soft_wrap=True))
    table = progress.Progress(2)
    with progress.shown(table.line):
        table.started("zlib", tmp_path / "zlib.log")
        table.tick(table.line)
        table.finished("zlib", 3.2)
    assert capsys.readouterr().out.splitlines() == [
        "building zlib",
        "built    zlib (1/2, 0:00, 3 CPU s)",
    ]


def test_without_a_terminal_there_is_a_line_now_and_then(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PACE", 0)
    progress.Progress(2).tick(lambda: "how far it is")
    assert capsys.readouterr().out == "how far it is\n"


def test_the_line_tells_what_is_compiled(tmp_path: Path) -> None:
    table = progress.Progress(3)
    assert table.line() == "0 of 3 built"
    for name, text in (
        ("openblas", "gcc -O2 -I. -c ../kernel/dgemm.S -o dgemm.o\n"),
        ("scipy", "[7/99] Compiling C++ object scipy/x.so.p/src_y.cxx.o\n"),
        ("zlib", "checking for shared library support...\n"),
    ):
        (tmp_path / name).write_text(text)
        table.started(name, tmp_path / name)
    assert table.line() == "0 of 3 built: openblas (dgemm.S), scipy (src_y.cxx), zlib"
    table.finished("scipy", 1)
    assert table.line() == "1 of 3 built: openblas (dgemm.S), zlib"


class Screen(io.StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    screen = Screen()
    console = Console(
        file=screen, force_terminal=True, width=40, highlight=False, soft_wrap=True, no_color=True
    )
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "console", console)
    return screen


def test_on_a_terminal_one_line_changes_and_goes(screen: Screen, tmp_path: Path) -> None:
    table = progress.Progress(2)
    with progress.shown(lambda: "a line that is longer than the terminal is wide"):
        table.started("zlib", tmp_path / "zlib.log")
        table.finished("zlib", 3.2)
    told = screen.getvalue()
    assert "\r\x1b[2Ka line that is longer than the terminal…" in told
    assert "is wide" not in told
    assert "built" not in told
    # The line is gone, and the cursor there.
    assert told.endswith("\x1b[?25h\r\x1b[1A\x1b[2K")
    assert not re.search(r"\x1b\[[0-9;]*m", told)


def test_on_a_dumb_terminal_nothing_changes(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with progress.shown(lambda: "a line"):
        progress.say("another")
    assert screen.getvalue() == "another\n"


def test_quiet_is_the_last_line(
    level: Callable[[progress.Level], None], screen: Screen, tmp_path: Path
) -> None:
    level(progress.Level.QUIET)
    with progress.shown(lambda: "a line"):
        progress.Progress(1).started("zlib", tmp_path / "zlib.log")
        progress.say("said")
    progress.conclude("done")
    assert screen.getvalue() == "done\n"


def test_verbose_shows_logs_as_they_come(
    level: Callable[[progress.Level], None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    level(progress.Level.VERBOSE)
    log = tmp_path / "zlib.log"
    table = progress.Progress(1)
    table.started("zlib", log)
    table.tick(table.line)
    log.write_bytes(b"\x1b[1mone\x1b[0m\n\ntwo\nth")
    table.tick(table.line)
    with log.open("ab") as stream:
        stream.write(b"ree\n")
    table.finished("zlib", 1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1] == ["building zlib", "zlib | one", "zlib | two", "zlib | three"]


def test_amounts() -> None:
    assert [progress.about(each) for each in (5, 89, 91, 3000)] == [
        "5 s",
        "89 s",
        "2 min",
        "50 min",
    ]
    assert [progress.size(each) for each in (0.2, 165.4, 1234)] == [
        *("less than 1 MB", "165 MB", "1.2 GB"),
    ]


def test_places_are_as_the_user_would_type_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert progress.place(tmp_path / "a b" / "c") == "a b/c"
    assert progress.place(Path("/elsewhere")) == "/elsewhere"
