from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from builder.source import downloads
from builder.source.downloads import Answer

CONTENT = bytes(range(200))


class Server:
    """A server that sends CONTENT, and interrupts each answer after ``cut`` bytes."""

    def __init__(self, cut: int, resumes: bool = True) -> None:
        self.cut = cut
        self.resumes = resumes
        self.asked: list[int] = []

    @contextmanager
    def ask(self, offset: int) -> Iterator[Answer]:
        self.asked.append(offset)
        content = CONTENT[offset if self.resumes else 0 :]
        blocks = [content[: self.cut // 2], content[self.cut // 2 : self.cut]]
        yield Answer(self.resumes and offset > 0, len(content), iter(blocks))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads.time, "sleep", lambda _: None)


def test_an_interrupted_download_is_resumed(tmp_path: Path) -> None:
    server = Server(cut=60)
    downloads.write_with_retries(server.ask, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.asked == [0, 60, 120, 180]


def test_a_server_that_cannot_resume_sends_the_whole_file(tmp_path: Path) -> None:
    server = Server(cut=60, resumes=False)
    with pytest.raises(OSError, match="broke off after 60 of 200 bytes"):
        downloads.write_with_retries(server.ask, tmp_path / "file")
    assert len(server.asked) == 1 + downloads.TRIES
    server.cut = len(CONTENT)
    downloads.write_with_retries(server.ask, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_timeout_is_retried_and_reported(tmp_path: Path) -> None:
    asked = []

    @contextmanager
    def ask(offset: int) -> Iterator[Answer]:
        asked.append(offset)
        raise TimeoutError("timed out")
        yield

    with pytest.raises(OSError, match="timed out"):
        downloads.write_with_retries(ask, tmp_path / "file")
    assert asked == [0] * downloads.TRIES


def test_a_missing_file_is_not_retried(tmp_path: Path) -> None:
    asked = []

    @contextmanager
    def ask(offset: int) -> Iterator[Answer]:
        asked.append(offset)
        raise LookupError("HTTP status 404")
        yield

    with pytest.raises(LookupError, match="404"):
        downloads.write_with_retries(ask, tmp_path / "file")
    assert asked == [0]
