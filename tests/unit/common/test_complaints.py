from __future__ import annotations

import pytest

from builder.common import complaints

NOISE = [f"gcc -O2 -Werror -c file{number}.c" for number in range(300)]
EPILOGUE = ["Script failed with status 2", "Script execution failed.", "  Work directory: /x"]


@pytest.mark.parametrize(
    "complaint",
    [
        "deflate.c:300:13: error: expected ')' before '{' token",
        "Fatal Error: Cannot open module file 'x.mod' for reading",
        "src/a.h:3:10: fatal error: b.h: No such file or directory",
        "t.c:(.text+0xa): undefined reference to `nope'",
        "/usr/bin/ld: cannot find -lz: No such file or directory",
        "FAILED: scipy/x.cpython-311.so",
        "configure: error: no acceptable C compiler found in $PATH",
        "ModuleNotFoundError: No module named 'x'",
        "BuildFailed: x-1.0-0.conda failed a test",
    ],
)
def test_the_first_complaint_is_shown_with_what_is_around_it(complaint: str) -> None:
    after = ["make: *** [Makefile:162: deflate.o] Error 1", *NOISE[:40]]
    log = "\n".join([*NOISE, complaint, *after, *EPILOGUE])
    assert complaints.reason(log) == complaint
    shown = complaints.matter(log)
    assert len(shown) == complaints.SHOWN
    assert shown[complaints.BEFORE] == complaint


def test_without_one_the_last_lines_are_shown_but_not_the_engines() -> None:
    log = "\n".join([*NOISE, "+ cmp a b", "a b differ: byte 1", "+ exit 1", *EPILOGUE])
    assert complaints.reason(log) == "a b differ: byte 1"
    shown = complaints.matter(log)
    assert len(shown) == complaints.SHOWN
    assert shown[-1] == "+ exit 1"


def test_what_a_script_looks_for_is_no_complaint() -> None:
    log = "+ grep ': error: x' log\nnothing found\n"
    assert complaints.reason(log) == "nothing found"
    assert complaints.matter(log) == log.splitlines()


def test_an_empty_log_tells_nothing() -> None:
    assert complaints.reason("\n") == ""
    assert complaints.matter("") == []


def test_long_lines_are_cut() -> None:
    assert len(complaints.reason("x" * 5000)) == complaints.WIDEST


def test_a_line_loses_what_would_move_the_cursor() -> None:
    assert complaints.plain("\x1b[1;31mred\x1b[0m \x1b]0;title\x07e\x08n\x00d \r") == "red end"
