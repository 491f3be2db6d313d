"""The end of upstream support of each package, from the dates in support.toml."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from builder.common.errors import ConfigurationError
from builder.stack.recipes import Recipe

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).with_name("support.toml")
# How long before the end of support a warning begins.
NOTICE = timedelta(days=365)


@dataclass(frozen=True)
class Support:
    """The support of a package.

    Attributes:
        package: the directory of its recipe.
        ends: the last day of support; None if no date is recorded.
        source: where the date is from.
        fixed_until: the last day on which Debian's fixes follow, if the recipe applies them.
    """

    package: str
    version: str
    ends: date | None = None
    source: str = ""
    fixed_until: date | None = None

    def state(self, today: date) -> str:
        """Return "ended", "ends" within NOTICE, or "" if neither."""
        if self.ends is None or self.ends > today + NOTICE:
            return ""
        return "ended" if self.ends < today else "ends"


def read() -> dict[str, Any]:
    """Return support.toml."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def find(recipes: Iterable[Recipe]) -> list[Support]:
    """Return the support of each recipe that has sources, sorted by the end, then the name.

    Raises:
        ConfigurationError: support.toml has a date of another series than the recipe ships.
    """
    document = read()
    chosen = {recipe.path.name: recipe for recipe in recipes if recipe.sources}
    supports = [look_up(recipe, document) for recipe in chosen.values()]
    return sorted(supports, key=lambda support: (support.ends or date.max, support.package))


def look_up(recipe: Recipe, document: Mapping[str, Any]) -> Support:
    """Return a recipe's support, as support.toml states it; raises as find does."""
    package, version = recipe.path.name, recipe.outputs[0].version
    fixed_until = document["debian"]["ends"] if recipe.fixes else None
    entry = document["packages"].get(package)
    if entry is None:
        return Support(package, version, fixed_until=fixed_until)
    line = entry["line"]
    if not f"{version}.".startswith(f"{line}."):
        raise ConfigurationError(
            f"{FILE.name} has the end of support of {package} {line}, and the recipe has {version}",
            "state when upstream's support of that series ends",
        )
    return Support(package, version, entry["ends"], entry["source"], fixed_until)


def row(support: Support) -> list[str]:
    """Return the cells of a table: the package, and what upstream states."""
    return [
        support.package,
        support.version,
        str(support.ends or "no date recorded"),
        f"Debian, until {support.fixed_until}" if support.fixed_until else "",
        support.source,
    ]


def warnings(supports: Iterable[Support], today: date) -> list[str]:
    """Return a line for the packages whose support has ended, and for those where it ends soon."""
    states = {"ended": "upstream support has ended", "ends": "upstream support ends within a year"}
    lines = []
    for state, words in states.items():
        names = [
            f"{support.package} {support.version} ({support.ends}"
            + (f"; Debian fixes it until {support.fixed_until})" if support.fixed_until else ")")
            for support in supports
            if support.state(today) == state
        ]
        if names:
            lines.append(f"warning: {words}: {', '.join(names)}")
    return lines
