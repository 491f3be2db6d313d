"""Read the dates on which the upstream support of packages ends; format warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from builder.common.errors import ConfigurationError
from builder.common.files import read_toml
from builder.stack.recipes import Recipe

FILE = Path(__file__).with_name("support.toml")
# The time before the end of support from which a warning is printed.
NOTICE = timedelta(days=365)


@dataclass(frozen=True)
class Support:
    """The upstream support of a package.

    Attributes:
        package: the name of its recipe's directory.
        version: the version that the recipe builds.
        ends: the last day of support; None if support.toml has no date.
        source: the origin of the date, such as "PEP 664".
        fixed_until: the last day of Debian's security support; None if the recipe does not apply
            Debian's fixes.
    """

    package: str
    version: str
    ends: date | None = None
    source: str = ""
    fixed_until: date | None = None

    def get_state(self, today: date) -> str:
        """Return "ended" after the end of support, "ends" within NOTICE before it, otherwise ""."""
        if self.ends is None or self.ends > today + NOTICE:
            return ""
        return "ended" if self.ends < today else "ends"


def read() -> dict[str, Any]:
    """Parse support.toml."""
    return read_toml(FILE)


def find_all(recipes: Iterable[Recipe]) -> list[Support]:
    """Return the support of each recipe that has sources, sorted by the last day, then the name.

    Raises:
        ConfigurationError: the date in support.toml is for another series than the recipe's.
    """
    document = read()
    recipes_by_name = {recipe.path.name: recipe for recipe in recipes if recipe.sources}
    supports = [look_up(recipe, document) for recipe in recipes_by_name.values()]
    return sorted(supports, key=lambda support: (support.ends or date.max, support.package))


def look_up(recipe: Recipe, document: Mapping[str, Any]) -> Support:
    """Return a recipe's support.

    Args:
        document: the parsed support.toml.

    Raises:
        ConfigurationError: support.toml has the date of another series of the package.
    """
    package, version = recipe.path.name, recipe.outputs[0].version
    fixed_until = document["debian"]["ends"] if recipe.fixes else None
    entry = document["packages"].get(package)
    if entry is None:
        return Support(package, version, fixed_until=fixed_until)
    series = entry["line"]
    if not f"{version}.".startswith(f"{series}."):
        raise ConfigurationError(
            f"{FILE.name} has the end of support of {package} {series}, but the recipe has "
            f"{version}",
            f"write the end of upstream support of {package} {version} into {FILE.name}",
        )
    return Support(package, version, entry["ends"], entry["source"], fixed_until)


def format_row(support: Support) -> list[str]:
    """Return the cells of a table row.

    The cells are the package, its version, the end of upstream support, the end of Debian's fixes,
    and the source of the upstream date.
    """
    return [
        support.package,
        support.version,
        str(support.ends or "no date recorded"),
        f"Debian, until {support.fixed_until}" if support.fixed_until else "",
        support.source,
    ]


def format_warnings(supports: Iterable[Support], today: date) -> list[str]:
    """Format a warning about ended support, and a warning about support that ends within NOTICE.

    Each warning names its packages. Omit a warning without packages.
    """
    states = {"ended": "upstream support has ended", "ends": "upstream support ends within a year"}
    lines = []
    for state, description in states.items():
        names = [
            f"{support.package} {support.version} ({support.ends}"
            + (f"; Debian fixes it until {support.fixed_until})" if support.fixed_until else ")")
            for support in supports
            if support.get_state(today) == state
        ]
        if names:
            lines.append(f"warning: {description}: {', '.join(names)}")
    return lines
