"""Test that failed downloads are retried or resumed; the server is fake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from builder.source import downloads
from builder.source.downloads import Answer

CONTENT = bytes(range(200))


class Server:
    """A fake server that sends CONTENT and interrupts each answer after ``cut`` bytes.

    Attributes:
        resumes: whether the server sends only the bytes after the requested offset.
        offsets: the requested offsets, in order.
    """

    def __init__(self, cut: int, resumes: bool = True) -> None:
        self.cut = cut
        self.resumes = resumes
        self.offsets: list[int] = []

    @contextmanager
    def ask(self, offset: int) -> Iterator[Answer]:
        self.offsets.append(offset)
        content = CONTENT[offset if self.resumes else 0 :]
        blocks = [content[: self.cut // 2], content[self.cut // 2 : self.cut]]
        yield Answer(self.resumes and offset > 0, len(content), iter(blocks))


@pytest.fixture(autouse=True)
def retry_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the pauses between retries."""
    monkeypatch.setattr(downloads.time, "sleep", lambda _: None)


def test_an_interrupted_download_is_resumed(tmp_path: Path) -> None:
    server = Server(cut=60)
    downloads.write_with_retries(server.ask, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.offsets == [0, 60, 120, 180]


def test_a_download_that_cannot_be_resumed_starts_again(tmp_path: Path) -> None:
    server = Server(cut=60, resumes=False)
    with pytest.raises(OSError, match="broke off after 60 of 200 bytes"):
        downloads.write_with_retries(server.ask, tmp_path / "file")
    assert len(server.offsets) == 1 + downloads.TRIES
    server.cut = len(CONTENT)
    downloads.write_with_retries(server.ask, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_timeout_is_reported_after_all_retries(tmp_path: Path) -> None:
    offsets = []

    @contextmanager
    def ask(offset: int) -> Iterator[Answer]:
        offsets.append(offset)
        raise TimeoutError("timed out")
        yield

    with pytest.raises(OSError, match="timed out"):
        downloads.write_with_retries(ask, tmp_path / "file")
    assert offsets == [0] * downloads.TRIES


def test_a_missing_file_is_not_retried(tmp_path: Path) -> None:
    offsets = []

    @contextmanager
    def ask(offset: int) -> Iterator[Answer]:
        offsets.append(offset)
        raise LookupError("HTTP status 404")
        yield

    with pytest.raises(LookupError, match="404"):
        downloads.write_with_retries(ask, tmp_path / "file")
    assert offsets == [0]
