"""Links between the documents lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from builder.common import paths

README = paths.ROOT / "README.md"
INDEX = paths.ROOT / "docs" / "index.md"
PAGES = sorted((paths.ROOT / "docs").glob("*.md"))
DOCUMENTS = [README, paths.ROOT / "CONTRIBUTING.md", *PAGES]


def prose(document: Path) -> str:
    """A document without its blocks of code, whose comments look like headings."""
    return re.sub(r"^```.*?^```$", "", document.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def links(document: Path) -> list[str]:
    """The relative links of a document."""
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(document))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(document: Path) -> set[str]:
    """What GitHub lets a link to one of the headings end with."""
    headings = re.findall(r"^#+ (.*)$", prose(document), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(document: Path) -> list[str]:
    """The relative links of a document that name no file, or no heading of it."""
    found = []
    for link in links(document):
        name, _, anchor = link.partition("#")
        file = document.parent / name if name else document
        if not file.is_file() or (anchor and anchor not in anchors(file)):
            found.append(link)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_lead_to_files_and_headings(document: Path) -> None:
    assert broken(document) == []


def test_the_index_leads_to_every_page_and_readme_to_it() -> None:
    assert {page.name for page in PAGES} <= {INDEX.name, *links(INDEX)}
    assert "docs/index.md" in links(README)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Exit codes of `x`\n```sh\n# none\n```\n", encoding="utf-8")
    document = tmp_path / "document.md"
    document.write_text(
        "# Here\n[a](page.md) ![b](page.md#exit-codes-of-x) [c](#here) [d](https://example.org/e)\n"
        "[f](pages.md) [g](page.md#none) [h](#there)\n",
        encoding="utf-8",
    )
    assert broken(document) == ["pages.md", "page.md#none", "#there"]
