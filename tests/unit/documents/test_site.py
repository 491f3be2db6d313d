"""Test the links and the table of contents of the documentation site."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.common import paths
from builder.documents import site


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write documents whose index has two pages; return their directory."""
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "picture.svg").write_text("<svg/>")
    for name, text in {
        "README": "[all](docs/index.md) [page](docs/page.md#a-b) [there](https://example.org/x.md)",
        "CONTRIBUTING": "[here](#here)",
        "CHANGELOG": "",
        "docs/index": "# I\n\n## Of A\n\n- Why? [R](../README.md)\n\n## Of B\n\n- [P](page.md)\n",
        "docs/page": "![p](../picture.svg) [r](../README.md#x)",
    }.items():
        (tmp_path / f"{name}.md").write_text(text)
    return tmp_path


def test_links_are_rewritten_to_the_pages_of_the_site(documents: Path) -> None:
    source = documents / "source"
    source.mkdir()
    pages = site.gather_pages({"tasks.md": "# Tasks: x\n"}, source)
    assert pages["readme.md"] == (
        "[all](index.md) [page](page.md#a-b) [there](https://example.org/x.md)"
    )
    assert pages["contributing.md"] == "[here](#here)"
    assert pages["page.md"] == "![p](picture.svg) [r](readme.md#x)"
    assert (source / "picture.svg").is_file()
    assert "- [Tasks: x](tasks.md)" in pages["index.md"]


def test_the_table_of_contents_has_the_sections_and_pages_of_the_index(documents: Path) -> None:
    index = "# I\n\n## Of A\n\n- Why? [R](readme.md)\n\n## Of B\n\n- [P q](page.md), [S](s-t.md)\n"
    margin = site.format_contents(index)
    assert ":caption: Of A\n\nR <readme>\n```\n" in margin
    assert ":caption: Of B\n\nP q <page>\nS <s-t>\n```\n" in margin
