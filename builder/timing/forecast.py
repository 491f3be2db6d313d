"""Estimate the time, downloads and disk space of a build, from costs.toml and earlier builds."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from builder.common import paths
from builder.common.files import write_atomically
from builder.source.sources import cached_path
from builder.stack.recipes import Recipe, Source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COSTS = Path(__file__).with_name("costs.toml")
# CPU seconds of a recipe that is not in costs.toml, such as a new recipe.
DEFAULT_CPU_SECONDS = 30.0
# The stages whose durations are recorded.
STAGES = ("environment", "verification")
# The disk space of a package as a multiple of its unpacked size. The disk holds it unpacked, packed
# and in an environment.
COPIES = 2.3
# MB of the work directories during a build with and without a recipe of more than
# LARGE_CPU_SECONDS. Estimated from the sizes of sources and objects, not measured.
LARGE_WORK, SMALL_WORK, LARGE_CPU_SECONDS = 1000.0, 100.0, 120.0


@functools.cache
def _read_costs() -> dict[str, dict[str, float]]:
    costs: dict[str, dict[str, float]] = tomllib.loads(COSTS.read_text(encoding="utf-8"))
    return costs


def _measurements_file() -> Path:
    # The measurements are per user, not per cache key: a recipe with other inputs takes about as
    # long.
    return paths.cache() / "seconds.json"


def read_measurements() -> dict[str, Any]:
    """Read the durations of this user's builds: ``recipes`` and ``stages``; empty if unknown."""
    try:
        measurements = json.loads(_measurements_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return measurements if isinstance(measurements, dict) else {}


def record_measurement(kind: str, name: str, measurement: Any) -> None:
    """Record the duration of a recipe or a stage for later estimates.

    Args:
        kind: ``recipes`` or ``stages``.
        measurement: seconds, or a table of them.
    """
    measurements = read_measurements()
    measurements.setdefault(kind, {})[name] = measurement
    # If two processes write at once, one measurement is lost. That only makes an estimate worse.
    text = json.dumps(measurements, indent=1, sort_keys=True) + "\n"
    write_atomically(_measurements_file(), text)


def estimate_cpu_seconds(recipes: Iterable[Recipe]) -> dict[str, float]:
    """Estimate the CPU seconds of each recipe, by name; this user's measurements come first."""
    measurements = read_measurements().get("recipes", {})
    costs = _read_costs()["recipes"]
    # The keys of the tables are names of directories, because several recipes share a name.
    directories = {recipe.name: recipe.path.name for recipe in recipes}
    return {
        name: float(
            measurements.get(directory, {}).get(
                "cpu_seconds", costs.get(directory, DEFAULT_CPU_SECONDS)
            )
        )
        for name, directory in directories.items()
    }


def is_expensive(recipe: Recipe, cpu_seconds: float) -> bool:
    """Return whether costs.toml gives a recipe at least ``cpu_seconds``, on any machine."""
    return _read_costs()["recipes"].get(recipe.path.name, 0.0) >= cpu_seconds


def estimate_stage_seconds(stage: str) -> float:
    """Estimate the seconds of a stage; 0 if it is unknown."""
    measurements = read_measurements().get("stages", {})
    return float(measurements.get(stage, _read_costs()["stages"].get(stage, 0)))


def find_absent_sources(sources: Iterable[Source]) -> list[Source]:
    """Find the sources that are not in the source cache."""
    return [source for source in sources if not cached_path(source).exists()]


def estimate_megabytes(sources: Iterable[Source]) -> float:
    """Estimate the total size in MB of the sources that costs.toml contains."""
    costs = _read_costs()["sources"]
    # Archives of Debian's patches have the name of the source that they patch, and are small.
    files = [source.file for source in sources if ".debian.tar." not in source.file]
    return sum(costs.get(re.split(r"[-_]v?\d", file)[0], 0) for file in files)


def estimate_disk_megabytes(recipes: Iterable[Recipe], download: float) -> float:
    """Estimate the disk space in MB that building recipes takes.

    Args:
        download: the MB of the sources that are not in the cache.
    """
    unpacked = _read_costs()["packages"]
    recipes = list(recipes)
    largest = max(estimate_cpu_seconds(recipes).values(), default=0)
    work = LARGE_WORK if largest > LARGE_CPU_SECONDS else SMALL_WORK
    return download + work + COPIES * sum(unpacked.get(recipe.path.name, 1) for recipe in recipes)
