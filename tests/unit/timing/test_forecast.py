"""Test the estimated costs, downloads and disk space of builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.common import paths
from builder.source.sources import get_cached_path
from builder.stack.recipes import Recipe, Source
from builder.timing import forecast


def make_recipe(name: str, *sources: Source) -> Recipe:
    return Recipe(name.partition("-")[0], Path(name), (), sources, (), ())


def test_every_cost_belongs_to_a_recipe_or_stage() -> None:
    directories = {file.parent.name for file in paths.RECIPES.glob("*/recipe.yaml")}
    costs = forecast._read_costs()
    assert set(costs["recipes"]) <= directories
    assert set(costs["packages"]) <= directories
    assert set(costs["stages"]) == set(forecast.STAGES)


def test_measured_costs_take_precedence_over_stored_costs() -> None:
    stored = forecast.estimate_cpu_seconds([make_recipe("scipy"), make_recipe("none")])
    assert stored == {
        "scipy": forecast._read_costs()["recipes"]["scipy"],
        "none": forecast.DEFAULT_CPU_SECONDS,
    }
    forecast.record_measurement("recipes", "scipy", {"cpu_seconds": 77.0, "wall_seconds": 50.0})
    forecast.record_measurement("stages", "verification", 12.0)
    assert forecast.estimate_cpu_seconds([make_recipe("scipy")]) == {"scipy": 77.0}
    # The recipe of the same package for another Python has its own estimate.
    assert forecast.estimate_cpu_seconds([make_recipe("scipy-0.19")])["scipy"] not in (
        77.0,
        stored["scipy"],
    )
    assert forecast.estimate_stage_seconds("verification") == 12
    assert forecast.estimate_stage_seconds("report") == 0


@pytest.mark.parametrize("content", ["", "[]", "{", "\xff"])
def test_a_damaged_file_of_measurements_is_ignored(content: str) -> None:
    paths.get_cache().mkdir()
    (paths.get_cache() / "seconds.json").write_text(content, encoding="latin-1")
    assert forecast.read_measurements() == {}
    forecast.record_measurement("stages", "environment", 1.0)
    assert forecast.estimate_stage_seconds("environment") == 1


def test_sizes_of_sources_are_estimated_by_project() -> None:
    names = ("numpy-9.9.tar.gz", "python3.11_3.11.2.orig.tar.gz", "unheard-of_1.orig.tar.gz")
    names += ("python3.11_3.11.2-6.debian.tar.xz",)
    sources = [Source(name, "ab" * 32) for name in names]
    costs = forecast._read_costs()["sources"]
    assert forecast.estimate_megabytes(sources) == costs["numpy"] + costs["python3.11"]
    get_cached_path(sources[0]).parent.mkdir(parents=True)
    get_cached_path(sources[0]).touch()
    assert forecast.find_absent_sources(sources) == sources[1:]


def test_disk_space_includes_downloads_packages_and_work() -> None:
    small = forecast.estimate_disk_megabytes([make_recipe("zlib")], 1)
    assert forecast.SMALL_WORK < small < forecast.SMALL_WORK + 10
    assert (
        forecast.estimate_disk_megabytes([make_recipe("zlib"), make_recipe("scipy")], 57)
        > forecast.LARGE_WORK + 57
    )
