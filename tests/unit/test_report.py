"""Test the reading and atomic writing of JSON reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder import report


def test_a_report_has_sorted_keys_and_a_failed_write_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "reports" / "x.json"
    report.write({"b": 1, "a": {"d": 2, "c": 3}}, file)
    assert file.read_text() == '{\n "a": {\n  "c": 3,\n  "d": 2\n },\n "b": 1\n}\n'
    assert report.read(file) == {"a": {"c": 3, "d": 2}, "b": 1}
    with pytest.raises(TypeError):
        report.write({"a": object()}, file)
    assert report.read(file)["b"] == 1


def test_a_missing_or_damaged_report_is_read_as_empty(tmp_path: Path) -> None:
    assert report.read(tmp_path / "none.json") == {}
    (tmp_path / "broken.json").write_text("{")
    assert report.read(tmp_path / "broken.json") == {}
