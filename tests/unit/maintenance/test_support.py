"""Test the end dates of upstream support in support.toml, and the warnings about them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import ConfigurationError
from builder.maintenance import support
from builder.maintenance.support import Support
from builder.stack.recipes import Fix, Output, Recipe, Source

TODAY = date(2026, 11, 28)
DOCUMENT = {
    "debian": {"suite": "bookworm", "ends": date(2028, 6, 30)},
    "packages": {"python": {"line": "3.11", "ends": date(2027, 10, 31), "source": "PEP 664"}},
}


def make_recipe(name: str, version: str, *fixes: Fix) -> Recipe:
    sources = (Source(f"{name}-{version}.tar.gz", "0" * 64),)
    path = Path("recipes", name)
    return Recipe(name, path, (Output(name, version, "0", ()),), sources, (), (), fixes)


def test_every_entry_matches_a_recipe_and_its_series() -> None:
    for name, entry in support.read()["packages"].items():
        text = (paths.RECIPES / name / "recipe.yaml").read_text("utf-8")
        assert re.search(rf'version: "?{re.escape(entry["line"])}[."\n]', text), name
        assert isinstance(entry["ends"], date)
        assert entry["source"]


def test_a_package_has_the_end_of_its_series_and_of_debians_fixes() -> None:
    result = support.look_up(make_recipe("python", "3.11.2", Fix("a.patch", ())), DOCUMENT)
    assert result == Support(
        "python", "3.11.2", date(2027, 10, 31), "PEP 664", fixed_until=date(2028, 6, 30)
    )


@pytest.mark.parametrize("version", ["3.12.0", "3.1.4", "3.110"])
def test_a_date_of_another_series_is_an_error(version: str) -> None:
    with pytest.raises(ConfigurationError, match=f"python 3.11, .*{version}"):
        support.look_up(make_recipe("python", version), DOCUMENT)


def test_a_package_without_an_entry_has_no_end_and_no_warning() -> None:
    result = support.look_up(make_recipe("zlib", "1.2.13"), DOCUMENT)
    assert (result.ends, result.get_state(TODAY)) == (None, "")
    assert support.format_row(result) == ["zlib", "1.2.13", "no date recorded", "", ""]


@pytest.mark.parametrize(
    ("ends", "state"),
    [
        (date(2026, 11, 27), "ended"),
        (TODAY, "ends"),
        (date(2027, 11, 28), "ends"),
        (date(2027, 11, 29), ""),
    ],
)
def test_a_warning_begins_a_year_before_the_end(ends: date, state: str) -> None:
    assert Support("python", "3.11.2", ends, "PEP 664").get_state(TODAY) == state


def test_warnings_have_the_end_of_support_and_of_debians_fixes() -> None:
    openssl = Support("openssl", "3.0.20", date(2026, 9, 7), "", date(2028, 6, 30))
    python = Support("python", "3.11.2", date(2027, 10, 31), "")
    assert support.format_warnings([openssl, python, Support("zlib", "1.2.13")], TODAY) == [
        "warning: upstream support has ended: openssl 3.0.20 (2026-09-07; Debian fixes it until"
        " 2028-06-30)",
        "warning: upstream support ends within a year: python 3.11.2 (2027-10-31)",
    ]
    assert support.format_warnings([replace(python, ends=date(2029, 1, 1))], TODAY) == []
