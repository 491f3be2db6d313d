from __future__ import annotations

from builder.environment import history

ONE, TWO = "1" * 64, "2" * 64


def line(file: str, sha256: str) -> str:
    return f"CHANNEL/linux-64/{file}.conda#sha256:{sha256}\n"


def test_a_file_that_stood_for_other_bytes_is_found() -> None:
    committed = f"-{line('zlib-1-h0_0', ONE)}+{line('zlib-1-h0_0', TWO)}"
    assert history.find_reused(line("zlib-1-h0_0", TWO), committed) == [
        "linux-64/zlib-1-h0_0.conda"
    ]


def test_what_is_not_committed_counts() -> None:
    committed = f"+{line('zlib-1-h0_0', ONE)}"
    assert history.find_reused(line("zlib-1-h0_0", TWO), committed)


def test_a_raised_number_and_files_of_the_past_are_right() -> None:
    committed = f"-{line('zlib-1-h0_0', ONE)}+{line('zlib-1-h0_0', TWO)}"
    assert history.find_reused(line("zlib-1-h0_1", ONE), committed) == []
