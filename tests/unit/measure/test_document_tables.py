"""Test that the tables in the documents equal the measurements in bench/results."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import CommandFailed, ConfigurationError
from builder.measure import document_tables


def test_documents_have_every_table_of_the_results() -> None:
    document_tables.check()
    names = {
        name
        for file in document_tables.list_documents()
        for _, name, _ in document_tables.MARKED.findall(file.read_text(encoding="utf-8"))
    }
    assert names == set(document_tables.TABLES)


def test_no_row_mixes_days() -> None:
    """The results compile-epyc have stock and openblas on different days; a row shows only one."""
    _, *rows = document_tables.make_first_calls("compile-epyc", ("stock", "openblas"))
    assert all(row[3:].count(document_tables.MISSING) == 1 for row in rows)


def test_a_changed_number_fails_the_check_and_is_written_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    readme = tmp_path / "README.md"
    readme.write_text("<!-- table: mean-speed-ups -->\n<!-- end of table -->\n")
    with pytest.raises(CommandFailed, match=r"README\.md"):
        document_tables.check()
    assert document_tables.update() == [readme]
    document_tables.check()
    text = readme.read_text(encoding="utf-8")
    assert "| `openblas` | 7.9 | 5.5 |\n" in text
    readme.write_text(text.replace("7.9", "8.1"), encoding="utf-8")
    with pytest.raises(CommandFailed, match=r"README\.md"):
        document_tables.check()


def test_an_unknown_table_is_named() -> None:
    with pytest.raises(ConfigurationError, match="'none'"):
        document_tables.fill_tables("<!-- table: none -->\n\n\n<!-- end of table -->")


def test_a_table_without_an_end_keeps_the_text_after_it() -> None:
    text = "<!-- table: summary -->\n\ntext\n<!-- table: gpu -->\n<!-- end of table -->\n"
    assert "\ntext\n" in document_tables.fill_tables(text)
