"""Test the excerpt of a failed build's log."""

from __future__ import annotations

import pytest

from builder.common import log_excerpt

NOISE = [f"gcc -O2 -Werror -c file{number}.c" for number in range(300)]
ENGINE_REPORT = ["Script failed with status 2", "Script execution failed.", "  Work directory: /x"]


@pytest.mark.parametrize(
    "error",
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
def test_the_excerpt_surrounds_the_first_error(error: str) -> None:
    after = ["make: *** [Makefile:162: deflate.o] Error 1", *NOISE[:40]]
    log = "\n".join([*NOISE, error, *after, *ENGINE_REPORT])
    assert log_excerpt.summarize_failure(log) == error
    excerpt = log_excerpt.extract_excerpt(log)
    assert len(excerpt) == log_excerpt.EXCERPT_LINES
    assert excerpt[log_excerpt.CONTEXT_LINES] == error


def test_without_an_error_the_excerpt_ends_before_the_engines_report() -> None:
    log = "\n".join([*NOISE, "+ cmp a b", "a b differ: byte 1", "+ exit 1", *ENGINE_REPORT])
    assert log_excerpt.summarize_failure(log) == "a b differ: byte 1"
    excerpt = log_excerpt.extract_excerpt(log)
    assert len(excerpt) == log_excerpt.EXCERPT_LINES
    assert excerpt[-1] == "+ exit 1"


def test_a_command_that_the_shell_traces_is_not_an_error() -> None:
    log = "+ grep ': error: x' log\nnothing found\n"
    assert log_excerpt.summarize_failure(log) == "nothing found"
    assert log_excerpt.extract_excerpt(log) == log.splitlines()


def test_an_empty_log_has_no_excerpt() -> None:
    assert log_excerpt.summarize_failure("\n") == ""
    assert log_excerpt.extract_excerpt("") == []


def test_long_lines_are_cut() -> None:
    assert len(log_excerpt.summarize_failure("x" * 5000)) == log_excerpt.MAX_LINE_LENGTH


def test_control_sequences_are_stripped() -> None:
    assert (
        log_excerpt.strip_control_sequences("\x1b[1;31mred\x1b[0m \x1b]0;title\x07e\x08n\x00d \r")
        == "red end"
    )
