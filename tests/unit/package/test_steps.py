from __future__ import annotations

import time
from pathlib import Path

import pytest

from builder.common import paths, processes
from builder.package import steps
from builder.package.packages import Plan
from builder.package.steps import Step, Steps
from builder.source.sources import cache_file
from builder.stack.recipes import Recipe, Source
from builder.timing import forecast

SOURCES = tuple(
    Source(name, digit * 64) for name, digit in (("scipy-1.tar.gz", "a"), ("zlib_1.orig", "b"))
)
THEN = ("environment", "verification", "report")
COSTS = {
    "recipes": {"zlib": 5, "numpy": 310, "scipy": 1030},
    "stages": {"environment": 2, "verification": 32},
    "sources": {"scipy": 56, "zlib": 1},
    "packages": {"numpy": 23, "scipy": 92},
}


def recipe(name: str, *sources: Source) -> Recipe:
    return Recipe(name, Path(name), (), sources, (), ())


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Plan:
    monkeypatch.setattr(processes, "cpus", lambda: 2)
    monkeypatch.setattr(forecast, "_costs", lambda: COSTS)
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path / "envs")
    monkeypatch.chdir(tmp_path)
    names = ("zlib", "numpy", "scipy")
    recipes = (recipe("zlib", SOURCES[1]), recipe("numpy"), recipe("scipy", SOURCES[0]))
    needs = {name: frozenset(names[:number]) for number, name in enumerate(names)}
    return Plan(recipes, needs, {name: name for name in names}, {})


def build(*names: str) -> None:
    for name in names:
        (paths.package_cache() / name).mkdir(parents=True)
        (paths.package_cache() / name / "packages.json").write_text("[]")


def test_what_will_be_done_is_told_first(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    known = steps.announce("openblas", plan, THEN, jobs=2)
    assert known.names == ("fetch", "packages", *THEN)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "openblas: 3 of 3 recipes to build, about 15 min on 2 cores"
    told = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[1:]}
    assert told["steps"] == "fetch, packages, environment, verification, report"
    assert told["fetch"] == "2 files, 57 MB to download"
    assert told["packages"] == "22 min of CPU time: scipy 17 min, numpy 5 min"
    assert told["cache"].startswith("cache, about 1.3 GB")
    assert told["environment"] == "envs/openblas"
    assert max(map(len, lines)) <= 80


def test_what_is_in_the_cache_is_one_line(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    build("zlib", "numpy", "scipy")
    assert steps.announce("openblas", plan, THEN, jobs=2).names == THEN
    assert capsys.readouterr().out == "openblas: all 3 recipes are built\n"


def test_a_second_start_goes_on(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    build("zlib")
    (paths.work() / "numpy").mkdir(parents=True)
    for source in SOURCES:
        cache_file(source).parent.mkdir(parents=True)
        cache_file(source).write_bytes(b"x")
    assert steps.announce("openblas", plan, jobs=2).names == ("packages",)
    told = capsys.readouterr().out
    assert "openblas: go on: 1 of 3 recipes are built, 2 to build, about" in told
    assert "fetch" not in told


def test_a_disk_that_is_too_small_is_told(
    plan: Plan, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 300e6})
    monkeypatch.setattr(steps.shutil, "disk_usage", lambda _: usage)
    steps.announce("openblas", plan, jobs=1, origin="from ../openblas.tar")
    told = capsys.readouterr().out
    assert "; only 300 MB are free" in told
    assert "2 files, 57 MB, from ../openblas.tar" in told


def test_a_step_is_one_line_and_its_time_is_remembered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = Steps(THEN)
    with known.step("environment") as step:
        step.did = "25 packages in build/envs/openblas"
    with known.step("verification"):
        pass
    with known.step("report") as step:
        step.did = "build/reports/openblas.json"
    assert capsys.readouterr().out.splitlines() == [
        "1/3 environment  25 packages in build/envs/openblas, 0:00",
        "3/3 report       build/reports/openblas.json, 0:00",
    ]
    assert set(forecast.measured()["stages"]) == {"environment"}


def test_a_step_that_fails_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="x"), Steps(THEN).step("report") as step:
        step.did = "something"
        raise ValueError("x")
    assert capsys.readouterr().out == ""


def test_the_line_of_a_step_has_the_time_left() -> None:
    step = Step("2/5 packages", 0, later=40)
    assert step.text() == "2/5 packages"
    step.line = lambda: "1 of 3 built: scipy (x.c)"
    step.left = 600
    assert step.text() == "2/5 packages, 11 min left: 1 of 3 built: scipy (x.c)"
    step = Step("4/5 verification", 30, later=0)
    assert step.text() == "4/5 verification, 30 s left"
    step.began = time.monotonic() - 100
    assert step.text() == "4/5 verification"


def test_what_has_arrived_counts_what_is_under_way() -> None:
    assert steps.arrived(SOURCES) == "0 of 2 files, 0 of 57 MB"
    for source in SOURCES:
        cache_file(source).parent.mkdir(parents=True)
    (cache_file(SOURCES[0]).parent / ".part-x").write_bytes(bytes(3_000_000))
    cache_file(SOURCES[1]).write_bytes(bytes(1_000_000))
    assert steps.arrived(SOURCES) == "1 of 2 files, 4 of 57 MB"
    assert steps.fetched(SOURCES[1:]) == "1 file, 1 MB"
    assert steps.fetched([]) == ""
