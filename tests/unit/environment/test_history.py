"""Test that a package file whose hash differs between committed lock files is reported."""

from __future__ import annotations

from builder.environment import history

ONE, TWO = "1" * 64, "2" * 64


def make_lock_line(file: str, sha256: str) -> str:
    """Return the line of a package in a lock file."""
    return f"CHANNEL/linux-64/{file}.conda#sha256:{sha256}\n"


def test_a_package_file_whose_hash_changed_is_reported() -> None:
    committed = f"-{make_lock_line('zlib-1-h0_0', ONE)}+{make_lock_line('zlib-1-h0_0', TWO)}"
    assert history.find_reused(make_lock_line("zlib-1-h0_0", TWO), committed) == [
        "linux-64/zlib-1-h0_0.conda"
    ]


def test_an_uncommitted_lock_file_is_compared_with_the_commits() -> None:
    committed = f"+{make_lock_line('zlib-1-h0_0', ONE)}"
    assert history.find_reused(make_lock_line("zlib-1-h0_0", TWO), committed)


def test_a_changed_package_with_a_new_build_number_is_accepted() -> None:
    committed = f"-{make_lock_line('zlib-1-h0_0', ONE)}+{make_lock_line('zlib-1-h0_0', TWO)}"
    assert history.find_reused(make_lock_line("zlib-1-h0_1", ONE), committed) == []
