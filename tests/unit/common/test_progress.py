"""Test the progress of a command: the live line, the levels quiet and verbose, and formats."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from builder.common import progress


def test_durations_are_minutes_and_seconds() -> None:
    assert progress.format_duration(61.9) == "1:01"


def test_the_time_left_is_extrapolated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builder.common.progress.time.monotonic", lambda: 160.0)
    assert progress.format_time_left(1, 4, 100.0) == ", about 3 min left"
    assert progress.format_time_left(0, 4, 100.0) == progress.format_time_left(4, 4, 100.0) == ""


def test_the_last_line_of_a_long_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("line\n" * 10_000 + "  [12/99] cc -c y.c  \n\n")
    assert progress.read_last_line(log) == "[12/99] cc -c y.c"
    assert progress.read_last_line(tmp_path / "none") == ""


def test_a_table_wider_than_the_terminal_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    cells = ["a" * 70, "b" * 70]
    progress.print_table(["first", "second"], [cells])
    assert capsys.readouterr().out.splitlines()[1].split() == cells


@pytest.fixture
def level() -> Iterator[Callable[[progress.Level], None]]:
    """Yield the function that sets the verbosity; restore the level NORMAL."""
    yield progress.set_level
    progress.set_level(progress.Level.NORMAL)


def test_without_a_terminal_plain_lines_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # FORCE_COLOR must not add control sequences to lines in a file.
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress, "console", Console(highlight=False, soft_wrap=True))
    build_progress = progress.BuildProgress(2)
    with progress.show_live_line(build_progress.describe):
        build_progress.start("zlib", tmp_path / "zlib.log")
        build_progress.refresh(build_progress.describe)
        build_progress.finish("zlib", 3.2)
    assert capsys.readouterr().out.splitlines() == [
        "building zlib",
        "built    zlib (1/2, 0:00, 3 CPU s)",
    ]


def test_without_a_terminal_the_state_is_printed_at_an_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_INTERVAL", 0)
    progress.BuildProgress(2).refresh(lambda: "1 of 2 built")
    assert capsys.readouterr().out == "1 of 2 built\n"


def test_the_description_names_the_compiled_files(tmp_path: Path) -> None:
    build_progress = progress.BuildProgress(3)
    assert build_progress.describe() == "0 of 3 built"
    for name, text in (
        ("openblas", "gcc -O2 -I. -c ../kernel/dgemm.S -o dgemm.o\n"),
        ("scipy", "[7/99] Compiling C++ object scipy/x.so.p/src_y.cxx.o\n"),
        ("zlib", "checking for shared library support...\n"),
    ):
        (tmp_path / name).write_text(text)
        build_progress.start(name, tmp_path / name)
    assert build_progress.describe() == "0 of 3 built: openblas (dgemm.S), scipy (src_y.cxx), zlib"
    build_progress.finish("scipy", 1)
    assert build_progress.describe() == "1 of 3 built: openblas (dgemm.S), zlib"


class Screen(io.StringIO):
    """A text buffer that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Replace the console's output by a terminal of 40 columns."""
    screen = Screen()
    console = Console(
        file=screen, force_terminal=True, width=40, highlight=False, soft_wrap=True, no_color=True
    )
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "console", console)
    return screen


def test_on_a_terminal_the_live_line_is_removed_at_the_end(screen: Screen, tmp_path: Path) -> None:
    build_progress = progress.BuildProgress(2)
    with progress.show_live_line(lambda: "a line that is longer than the terminal is wide"):
        build_progress.start("zlib", tmp_path / "zlib.log")
        build_progress.finish("zlib", 3.2)
    output = screen.getvalue()
    assert "\r\x1b[2Ka line that is longer than the terminal…" in output
    assert "is wide" not in output
    assert "built" not in output
    # At the end, the cursor is visible again and the live line is erased.
    assert output.endswith("\x1b[?25h\r\x1b[1A\x1b[2K")
    assert not re.search(r"\x1b\[[0-9;]*m", output)


def test_on_a_dumb_terminal_there_is_no_live_line(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with progress.show_live_line(lambda: "a line"):
        progress.say("another")
    assert screen.getvalue() == "another\n"


def test_the_level_quiet_prints_only_the_result(
    level: Callable[[progress.Level], None], screen: Screen, tmp_path: Path
) -> None:
    level(progress.Level.QUIET)
    with progress.show_live_line(lambda: "a line"):
        progress.BuildProgress(1).start("zlib", tmp_path / "zlib.log")
        progress.say("said")
    progress.conclude("done")
    assert screen.getvalue() == "done\n"


def test_the_level_verbose_prints_complete_log_lines(
    level: Callable[[progress.Level], None], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    level(progress.Level.VERBOSE)
    log = tmp_path / "zlib.log"
    build_progress = progress.BuildProgress(1)
    build_progress.start("zlib", log)
    build_progress.refresh(build_progress.describe)
    log.write_bytes(b"\x1b[1mone\x1b[0m\n\ntwo\nth")
    build_progress.refresh(build_progress.describe)
    with log.open("ab") as stream:
        stream.write(b"ree\n")
    build_progress.finish("zlib", 1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1] == ["building zlib", "zlib | one", "zlib | two", "zlib | three"]


def test_estimates_and_sizes_are_formatted() -> None:
    assert [progress.format_estimate(amount) for amount in (5, 89, 91, 3000)] == [
        "5 s",
        "89 s",
        "2 min",
        "50 min",
    ]
    assert [progress.format_size(amount) for amount in (0.2, 165.4, 1234)] == [
        *("less than 1 MB", "165 MB", "1.2 GB"),
    ]


def test_paths_below_the_working_directory_are_relative(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert progress.display_path(tmp_path / "a b" / "c") == "a b/c"
    assert progress.display_path(Path("/elsewhere")) == "/elsewhere"
