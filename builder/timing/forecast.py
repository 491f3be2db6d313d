"""What is expected of a build: seconds, downloads, disk, from costs.toml and earlier builds."""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from builder.common import paths
from builder.source.sources import cache_file
from builder.stack.recipes import Recipe, Source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COSTS = Path(__file__).with_name("costs.toml")
# CPU seconds of a recipe that no table has, as of one that is being added.
UNKNOWN = 30.0
# The stages that this remembers.
STAGES = ("environment", "verification")
# How often a package's unpacked size is on the disk: unpacked, packed, in an environment.
COPIES = 2.3
# MB of the work directories under way, with a recipe in it that takes minutes, and without: from
# the sizes of sources and objects, not measured.
WORK, SMALL_WORK, MINUTES = 1000.0, 100.0, 120.0


@functools.cache
def _costs() -> dict[str, dict[str, float]]:
    costs: dict[str, dict[str, float]] = tomllib.loads(COSTS.read_text(encoding="utf-8"))
    return costs


def _file() -> Path:
    # Of the user, not of an entry in the package cache: what has other inputs takes as long.
    return paths.cache() / "seconds.json"


def measured() -> dict[str, Any]:
    """What this user's builds took: ``recipes`` and ``stages``; empty where nothing is known."""
    try:
        known = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def remember(kind: str, name: str, took: Any) -> None:
    """Keep what a recipe, or a stage, took."""
    known = measured()
    known.setdefault(kind, {})[name] = took
    file = _file()
    # Of two that write at once one is forgotten, which harms nobody.
    part = file.with_suffix(f".{os.getpid()}")
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    part.replace(file)


def cpu_seconds(recipes: Iterable[Recipe]) -> dict[str, float]:
    """The CPU seconds that each recipe will take, by its name."""
    mine = measured().get("recipes", {})
    costs = _costs()["recipes"]
    # Known by their directories: there are several of a name.
    places = {recipe.name: recipe.path.name for recipe in recipes}
    return {
        name: float(mine.get(place, {}).get("cpu_seconds", costs.get(place, UNKNOWN)))
        for name, place in places.items()
    }


def stage_seconds(name: str) -> float:
    """The seconds that a stage will take, if they are known."""
    known = measured().get("stages", {})
    return float(known.get(name, _costs()["stages"].get(name, 0)))


def absent(wanted: Iterable[Source]) -> list[Source]:
    """The sources that are not in the cache."""
    return [source for source in wanted if not cache_file(source).exists()]


def megabytes(wanted: Iterable[Source]) -> float:
    """How large sources are, as far as it is known."""
    costs = _costs()["sources"]
    # Debian's changes have the name of what they change, and are small.
    whole = [source.file for source in wanted if ".debian.tar." not in source.file]
    return sum(costs.get(re.split(r"[-_]v?\d", file)[0], 0) for file in whole)


def disk(missing: Iterable[Recipe], download: float) -> float:
    """MB that it takes to build recipes, with those of the sources that are to come."""
    unpacked = _costs()["packages"]
    missing = list(missing)
    seconds = cpu_seconds(missing)
    work = WORK if max(seconds.values(), default=0) > MINUTES else SMALL_WORK
    return download + work + COPIES * sum(unpacked.get(recipe.path.name, 1) for recipe in missing)
