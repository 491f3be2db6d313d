"""Estimate the time, downloads and disk space of a build, from costs.toml and earlier builds."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from builder.common import paths
from builder.common.files import read_toml, write_atomically
from builder.source.sources import get_cached_path
from builder.stack.recipes import Recipe, Source

COSTS = Path(__file__).with_name("costs.toml")
# CPU seconds of a recipe that is not in costs.toml, such as a new recipe.
DEFAULT_CPU_SECONDS = 30.0
# The stages of a command whose durations are recorded for estimates.
STAGES = ("environment", "verification")
# The disk space of a package as a multiple of its unpacked size. The disk contains the package
# unpacked, packed, and in an environment.
COPIES = 2.3
# MB of the work directories during a build. LARGE_WORK applies if a recipe takes more than
# LARGE_CPU_SECONDS, else SMALL_WORK. Estimated from the sizes of sources and objects, not measured.
LARGE_WORK, SMALL_WORK, LARGE_CPU_SECONDS = 1000.0, 100.0, 120.0


@functools.cache
def _read_costs() -> dict[str, dict[str, float]]:
    costs: dict[str, dict[str, float]] = read_toml(COSTS)
    return costs


def _get_measurements_file() -> Path:
    # Do not store measurements in cache entries: a changed recipe takes about as long as before.
    return paths.get_cache() / "seconds.json"


def read_measurements() -> dict[str, Any]:
    """Read the durations of this user's builds; return {} without a measurement.

    Returns:
        The key ``recipes`` has the durations of recipes, by name of the directory. The key
        ``stages`` has the seconds of stages, by name.
    """
    try:
        measurements = json.loads(_get_measurements_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return measurements if isinstance(measurements, dict) else {}


def record_measurement(kind: str, name: str, measurement: Any) -> None:
    """Record the duration of a recipe or a stage for later estimates.

    Args:
        kind: ``recipes`` or ``stages``.
        name: the name of the recipe's directory or of the stage.
        measurement: the wall seconds of a stage; for a recipe, a dictionary with ``cpu_seconds``
            and ``wall_seconds``.
    """
    measurements = read_measurements()
    measurements.setdefault(kind, {})[name] = measurement
    # If two processes write at once, a measurement is lost, and an estimate is less exact.
    text = json.dumps(measurements, indent=1, sort_keys=True) + "\n"
    write_atomically(_get_measurements_file(), text)


def estimate_cpu_seconds(recipes: Iterable[Recipe]) -> dict[str, float]:
    """Estimate the CPU seconds of each recipe, by name of the recipe.

    This user's measurements take precedence over costs.toml.
    """
    measurements = read_measurements().get("recipes", {})
    costs = _read_costs()["recipes"]
    # The tables have names of directories as keys, because several recipes share a name.
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
    """Return whether a recipe has at least ``cpu_seconds`` in costs.toml.

    The result is the same on each machine, because it does not depend on measurements.
    """
    return _read_costs()["recipes"].get(recipe.path.name, 0.0) >= cpu_seconds


def estimate_stage_seconds(stage: str) -> float:
    """Estimate the wall seconds of a stage; 0 for an unknown stage."""
    measurements = read_measurements().get("stages", {})
    return float(measurements.get(stage, _read_costs()["stages"].get(stage, 0)))


def find_absent_sources(sources: Iterable[Source]) -> list[Source]:
    """Find the sources that are not in the source cache."""
    return [source for source in sources if not get_cached_path(source).exists()]


def estimate_megabytes(sources: Iterable[Source]) -> float:
    """Estimate the total size of sources in MB; sources that costs.toml omits count as 0."""
    costs = _read_costs()["sources"]
    # Omit archives of Debian's patches. They are small, but their names begin like the names of the
    # large patched sources.
    files = [source.file for source in sources if ".debian.tar." not in source.file]
    return sum(costs.get(re.split(r"[-_]v?\d", file)[0], 0) for file in files)


def estimate_disk_megabytes(recipes: Iterable[Recipe], download: float) -> float:
    """Estimate the disk space in MB that a build of recipes takes.

    Args:
        recipes: the recipes to build.
        download: the total size, in MB, of the sources that are not in the cache.
    """
    unpacked = _read_costs()["packages"]
    recipes = list(recipes)
    largest = max(estimate_cpu_seconds(recipes).values(), default=0)
    work = LARGE_WORK if largest > LARGE_CPU_SECONDS else SMALL_WORK
    return download + work + COPIES * sum(unpacked.get(recipe.path.name, 1) for recipe in recipes)
