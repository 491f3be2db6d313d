"""Test the parsing of TOML files, the locks of directories, and the replacement of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.common import files
from builder.common.errors import CommandFailed


def test_toml_is_read_as_utf_8_and_other_text_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "table.toml"
    file.write_bytes('[table]\nname = "é"\n'.encode())
    assert files.read_toml(file) == {"table": {"name": "é"}}
    file.write_text("[table\n")
    with pytest.raises(ValueError, match="table"):
        files.read_toml(file)


def test_a_locked_directory_cannot_be_locked_until_its_release(tmp_path: Path) -> None:
    directory = tmp_path / "runs" / "one"
    for _ in range(2):
        with (
            files.lock_directory(directory, "is locked", "wait"),
            pytest.raises(CommandFailed, match="is locked"),
            files.lock_directory(directory, "is locked", "wait"),
        ):
            pass


@pytest.mark.parametrize("content", ["text \N{GREEK SMALL LETTER ALPHA}", b"\xff"])
def test_a_file_is_replaced_and_its_temporary_file_removed(
    tmp_path: Path, content: str | bytes
) -> None:
    file = tmp_path / "new" / "file"
    for old in (b"", b"old"):
        if old:
            file.write_bytes(old)
        files.write_atomically(file, content)
        assert file.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert list(file.parent.iterdir()) == [file]


def test_a_failed_write_keeps_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space")

    file = tmp_path / "file"
    file.write_text("old")
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        files.write_atomically(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
