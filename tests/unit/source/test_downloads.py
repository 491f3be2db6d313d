from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from builder.source import downloads
from builder.source.downloads import Answer

CONTENT = bytes(range(200))


class Server:
    """Sends CONTENT, but breaks off after ``cut`` bytes of each answer."""

    def __init__(self, cut: int, continues: bool = True) -> None:
        self.cut = cut
        self.continues = continues
        self.asked: list[int] = []

    @contextmanager
    def ask(self, offset: int) -> Iterator[Answer]:
        self.asked.append(offset)
        rest = CONTENT[offset if self.continues else 0 :]
        blocks = [rest[: self.cut // 2], rest[self.cut // 2 : self.cut]]
        yield Answer(self.continues and offset > 0, len(rest), iter(blocks))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads.time, "sleep", lambda _: None)


def test_what_breaks_off_is_continued(tmp_path: Path) -> None:
    server = Server(cut=60)
    downloads.write(server.ask, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert server.asked == [0, 60, 120, 180]


def test_a_server_that_cannot_continue_is_asked_for_all_of_it(tmp_path: Path) -> None:
    server = Server(cut=60, continues=False)
    with pytest.raises(OSError, match="broke off after 60 of 200 bytes"):
        downloads.write(server.ask, tmp_path / "file")
    assert len(server.asked) == 1 + downloads.TRIES
    server.cut = len(CONTENT)
    downloads.write(server.ask, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_silence_is_tried_again_and_told(tmp_path: Path) -> None:
    asked = []

    @contextmanager
    def ask(offset: int) -> Iterator[Answer]:
        asked.append(offset)
        raise TimeoutError("timed out")
        yield

    with pytest.raises(OSError, match="timed out"):
        downloads.write(ask, tmp_path / "file")
    assert asked == [0] * downloads.TRIES


def test_what_is_not_there_is_asked_for_once(tmp_path: Path) -> None:
    asked = []

    @contextmanager
    def ask(offset: int) -> Iterator[Answer]:
        asked.append(offset)
        raise LookupError("HTTP status 404")
        yield

    with pytest.raises(LookupError, match="404"):
        downloads.write(ask, tmp_path / "file")
    assert asked == [0]
