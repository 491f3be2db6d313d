from __future__ import annotations

from pathlib import Path

import pytest

from builder.common import paths
from builder.source.sources import cache_file
from builder.stack.recipes import Recipe, Source
from builder.timing import forecast


def recipe(name: str, *sources: Source) -> Recipe:
    return Recipe(name.partition("-")[0], Path(name), (), sources, (), ())


def test_every_cost_is_of_something_that_there_is() -> None:
    known = {file.parent.name for file in paths.RECIPES.glob("*/recipe.yaml")}
    costs = forecast._costs()
    assert set(costs["recipes"]) <= known
    assert set(costs["packages"]) <= known
    assert set(costs["stages"]) == set(forecast.STAGES)


def test_what_was_measured_here_comes_first() -> None:
    stored = forecast.cpu_seconds([recipe("scipy"), recipe("none")])
    assert stored == {"scipy": forecast._costs()["recipes"]["scipy"], "none": forecast.UNKNOWN}
    forecast.remember("recipes", "scipy", {"cpu_seconds": 77.0, "wall_seconds": 50.0})
    forecast.remember("stages", "verification", 12.0)
    assert forecast.cpu_seconds([recipe("scipy")]) == {"scipy": 77.0}
    # Of one name, for another Python.
    assert forecast.cpu_seconds([recipe("scipy-0.19")])["scipy"] not in (77.0, stored["scipy"])
    assert forecast.stage_seconds("verification") == 12
    assert forecast.stage_seconds("report") == 0


@pytest.mark.parametrize("content", ["", "[]", "{", "\xff"])
def test_a_file_that_is_none_of_ours_is_as_none(content: str) -> None:
    paths.cache().mkdir()
    (paths.cache() / "seconds.json").write_text(content, encoding="latin-1")
    assert forecast.measured() == {}
    forecast.remember("stages", "environment", 1.0)
    assert forecast.stage_seconds("environment") == 1


def test_sources_by_their_names_up_to_the_version() -> None:
    names = ("numpy-9.9.tar.gz", "python3.11_3.11.2.orig.tar.gz", "unheard-of_1.orig.tar.gz")
    names += ("python3.11_3.11.2-6.debian.tar.xz",)
    sources = [Source(name, "ab" * 32) for name in names]
    costs = forecast._costs()["sources"]
    assert forecast.megabytes(sources) == costs["numpy"] + costs["python3.11"]
    cache_file(sources[0]).parent.mkdir(parents=True)
    cache_file(sources[0]).touch()
    assert forecast.absent(sources) == sources[1:]


def test_disk_is_for_what_comes_what_stays_and_what_is_under_way() -> None:
    small = forecast.disk([recipe("zlib")], 1)
    assert forecast.SMALL_WORK < small < forecast.SMALL_WORK + 10
    assert forecast.disk([recipe("zlib"), recipe("scipy")], 57) > forecast.WORK + 57
