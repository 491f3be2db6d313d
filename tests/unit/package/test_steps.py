"""Test the announced cost of a build, and the lines of its steps."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from builder.common import paths, processes
from builder.package import package_cache, steps
from builder.package.package_cache import Plan
from builder.package.steps import Step, Steps
from builder.source.sources import get_cached_path
from builder.stack.recipes import Recipe, Source
from builder.timing import forecast

SOURCES = tuple(
    Source(name, digit * 64) for name, digit in (("scipy-1.tar.gz", "a"), ("zlib_1.orig", "b"))
)
LATER = ("environment", "verification", "report")
COSTS = {
    "recipes": {"zlib": 5, "numpy": 310, "scipy": 1030},
    "stages": {"environment": 2, "verification": 32},
    "sources": {"scipy": 56, "zlib": 1},
    "packages": {"numpy": 23, "scipy": 92},
}


def make_recipe(name: str, *sources: Source) -> Recipe:
    return Recipe(name, Path(name), (), sources, (), ())


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Plan:
    """Return a plan for two CPUs: numpy requires zlib, and scipy requires both."""
    monkeypatch.setattr(processes, "count_cpus", lambda: 2)
    monkeypatch.setattr(forecast, "_read_costs", lambda: COSTS)
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path / "envs")
    monkeypatch.chdir(tmp_path)
    names = ("zlib", "numpy", "scipy")
    recipes = (
        make_recipe("zlib", SOURCES[1]),
        make_recipe("numpy"),
        make_recipe("scipy", SOURCES[0]),
    )
    needs = {name: frozenset(names[:number]) for number, name in enumerate(names)}
    return Plan(recipes, needs, {name: name for name in names}, {})


def announce(plan: Plan, *later: str, jobs: int, origin: str = "") -> Steps:
    """Announce the missing recipes and the later steps; return all steps."""
    command_steps = steps.list_steps(package_cache.find_missing(plan), later)
    steps.announce("openblas", plan, command_steps, jobs=jobs, origin=origin)
    return command_steps


def build(*names: str) -> None:
    """Store empty cache entries for these recipes, as if they were built."""
    for name in names:
        (paths.get_package_cache() / name).mkdir(parents=True)
        (paths.get_package_cache() / name / "packages.json").write_text("[]")


def test_the_cost_of_a_build_is_announced(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    assert announce(plan, *LATER, jobs=2).names == ("fetch", "packages", *LATER)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "openblas: 3 of 3 recipes to build, about 15 min on 2 cores"
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[1:]}
    assert rows["steps"] == "fetch, packages, environment, verification, report"
    assert rows["fetch"] == "2 files, 57 MB to download"
    assert rows["packages"] == "22 min of CPU time: scipy 17 min, numpy 5 min"
    assert rows["cache"].startswith("cache, about 1.3 GB")
    assert rows["environment"] == "envs/openblas"
    assert max(map(len, lines)) <= 80


def test_a_cached_stack_is_announced_in_one_line(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    build("zlib", "numpy", "scipy")
    assert announce(plan, *LATER, jobs=2).names == LATER
    assert capsys.readouterr().out == "openblas: all 3 recipes are built\n"


def test_an_interrupted_build_is_resumed(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    build("zlib")
    (paths.get_work_directory() / "numpy").mkdir(parents=True)
    for source in SOURCES:
        get_cached_path(source).parent.mkdir(parents=True)
        get_cached_path(source).write_bytes(b"x")
    assert announce(plan, jobs=2).names == ("packages",)
    output = capsys.readouterr().out
    assert "openblas: resuming: 1 of 3 recipes are built, 2 to build, about" in output
    assert "fetch" not in output


def test_missing_disk_space_is_announced(
    plan: Plan, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 300e6})
    monkeypatch.setattr(steps.shutil, "disk_usage", lambda _: usage)
    announce(plan, jobs=1, origin="from ../openblas.tar")
    output = capsys.readouterr().out
    assert "; only 300 MB are free" in output
    assert "2 files, 57 MB, from ../openblas.tar" in output


def test_only_a_step_with_a_result_prints_a_line_and_records_its_duration(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command_steps = Steps(LATER)
    with command_steps.run_step("environment") as step:
        step.result = "25 packages in build/envs/openblas"
    with command_steps.run_step("verification"):
        pass
    with command_steps.run_step("report") as step:
        step.result = "build/reports/openblas.json"
    assert capsys.readouterr().out.splitlines() == [
        "1/3 environment  25 packages in build/envs/openblas, 0:00",
        "3/3 report       build/reports/openblas.json, 0:00",
    ]
    assert set(forecast.read_measurements()["stages"]) == {"environment"}


def test_an_unknown_step_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown step 'pack'"), Steps(LATER).run_step("pack"):
        pass


def test_a_failed_step_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="x"), Steps(LATER).run_step("report") as step:
        step.result = "something"
        raise ValueError("x")
    assert capsys.readouterr().out == ""


def test_the_line_of_a_step_has_the_estimated_time_left() -> None:
    step = Step("2/5 packages", 0, later_seconds=40)
    assert step.format_line() == "2/5 packages"
    step.describe = lambda: "1 of 3 built: scipy (x.c)"
    step.seconds_left = 600
    assert step.format_line() == "2/5 packages, 11 min left: 1 of 3 built: scipy (x.c)"
    step = Step("4/5 verification", 30, later_seconds=0)
    assert step.format_line() == "4/5 verification, 30 s left"
    step.began = time.monotonic() - 100
    assert step.format_line() == "4/5 verification"


def test_the_bytes_of_incomplete_downloads_are_counted() -> None:
    assert steps.describe_arrived(SOURCES) == "0 of 2 files, less than 1 MB of 57 MB"
    for source in SOURCES:
        get_cached_path(source).parent.mkdir(parents=True)
    (get_cached_path(SOURCES[0]).parent / ".part-x").write_bytes(bytes(3_000_000))
    get_cached_path(SOURCES[1]).write_bytes(bytes(1_000_000))
    assert steps.describe_arrived(SOURCES) == "1 of 2 files, 4 MB of 57 MB"
    assert steps.describe_fetched(SOURCES[1:]) == "1 file, 1 MB"
    assert steps.describe_fetched([]) == ""
