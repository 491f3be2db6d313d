"""The scheduler, with a process that stands for the engine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import BuildFailed, DiskFull
from builder.package import builds
from builder.package import packages as store
from builder.package.packages import Plan
from builder.package.steps import Step
from builder.stack import recipes, stacks
from builder.timing import forecast
from builder.timing.timings import Span

RECIPE = """schema_version: 1
package: {{name: {name}, version: '1.0'}}
requirements: {{host: [{host}]}}
"""


class Engine:
    """Ends at the first poll; makes the package it was asked for, or fails."""

    def __init__(self, outcome: Callable[[Path], int]) -> None:
        self.outcome = outcome
        self.built: list[str] = []

    def start(self, argv: list[Path], *, log: Path, **_: object) -> Engine:
        work = argv[-1].parent
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("cc -c x.c\nthe compiler's complaint\n")
        process = Engine(self.outcome)
        process.returncode = self.outcome(work)  # type: ignore[attr-defined]
        self.built.append(work.name)
        return process

    pid = 1 << 30  # Nobody's.

    def poll(self) -> int:
        return 0

    def wait(self) -> int:
        return 0


def succeed(work: Path) -> int:
    output = work / "output" / "linux-64"
    output.mkdir(parents=True)
    (output / f"{work.name}-1.0-h0_0.conda").write_text(work.name)
    (work / "result.json").write_text(json.dumps({"cpu_seconds": 1.0}))
    return 0


@pytest.fixture
def plan(recipes_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Plan:
    for name, host in (("theano-stack", "b"), ("b", "c"), ("c", "")):
        (recipes_dir / name).mkdir(parents=True)
        (recipes_dir / name / "recipe.yaml").write_text(RECIPE.format(name=name, host=host))
    monkeypatch.setattr(paths, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(builds.channel, "place", lambda _, where: where.mkdir(parents=True))
    stack = stacks.load("openblas")
    rendered = recipes.load_all(stack)
    return store.plan(rendered, recipes.closure(rendered), {})


def engine(monkeypatch: pytest.MonkeyPatch, outcome: Callable[[Path], int]) -> Engine:
    double = Engine(outcome)
    monkeypatch.setattr(builds.processes, "start", double.start)
    return double


def test_recipes_build_after_what_they_need_and_only_once(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = engine(monkeypatch, succeed)
    first = builds.build(plan)
    assert double.built == ["c", "b", "theano-stack"]
    assert builds.build(plan) == first
    assert len(double.built) == 3
    assert not [entry for entry in paths.work().iterdir() if entry.is_dir()]


def test_no_unpacked_package_of_the_same_name_is_left_for_the_engine(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    pkgs = paths.engine_cache() / "pkgs"
    stems = [f"{o.name}-{o.version}-{o.build}" for each in plan.recipes for o in each.outputs]
    for stem in [*stems, "other-1.0-0"]:
        (pkgs / stem / "info").mkdir(parents=True)
    engine(monkeypatch, succeed)
    builds.build(plan)
    assert [each.name for each in pkgs.iterdir()] == ["other-1.0-0"]


def test_a_recipe_waits_for_what_is_missing_below_what_is_cached(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine(monkeypatch, succeed)
    builds.build(plan)
    for name in ("c", "theano-stack"):
        shutil.rmtree(paths.package_cache() / plan.keys[name])
    double = engine(monkeypatch, succeed)
    builds.build(plan)
    assert double.built == ["c", "theano-stack"]


def test_a_failure_names_recipe_reason_and_log(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    engine(monkeypatch, lambda work: succeed(work) if work.name == "c" else 1)
    with pytest.raises(BuildFailed) as failure:
        builds.build(plan)
    message = str(failure.value)
    assert "recipe b failed: the compiler's complaint" in message
    assert "| cc -c x.c" in message
    assert str(paths.LOGS / "b.log") in message
    assert str(paths.work() / "b") in message
    assert (paths.work() / "b").is_dir()
    assert "run again" in message
    double = engine(monkeypatch, succeed)
    builds.build(plan)
    assert double.built == ["b", "theano-stack"]


def test_a_full_disk_is_told_from_other_failures(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = engine(monkeypatch, lambda _: 1)

    def start(argv: list[Path], *, log: Path, **rest: object) -> Engine:
        process = Engine.start(double, argv, log=log, **rest)
        log.write_text("cc: write error: No space left on device\n")
        return process

    monkeypatch.setattr(builds.processes, "start", start)
    with pytest.raises(DiskFull, match="recipe c: no room left"):
        builds.build(plan)


@pytest.fixture
def wide(recipes_dir: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A short chain that much waits for, and a long one."""
    hosts = {"many": "", "long": "", "l1": "many", "l2": "many", "l3": "many", "end": "long"}
    for name, host in {**hosts, "theano-stack": "l1, l2, l3, end"}.items():
        (recipes_dir / name).mkdir(exist_ok=True)
        (recipes_dir / name / "recipe.yaml").write_text(RECIPE.format(name=name, host=host))
    seconds = {"long": 500.0, "end": 100.0}
    costs = {"recipes": {**dict.fromkeys((*hosts, "theano-stack"), 20.0), **seconds}, "stages": {}}
    monkeypatch.setattr(forecast, "_costs", lambda: costs)
    rendered = recipes.load_all(stacks.load("openblas"))
    return store.plan(rendered, recipes.closure(rendered), {})


def test_the_longest_chain_starts_first(wide: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    double = engine(monkeypatch, succeed)
    builds.build(wide, jobs=1)
    assert double.built == ["long", "end", "many", "l1", "l2", "l3", "theano-stack"]


def test_what_takes_seconds_does_not_wait(wide: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    double = engine(monkeypatch, succeed)
    forecast._costs()["recipes"] |= {"many": builds.LIGHT / 2, "l2": builds.LIGHT / 2}
    builds.build(wide, jobs=1)
    assert double.built == ["many", "l2", "long", "end", "l1", "l3", "theano-stack"]


def test_what_is_beside_the_chain_gives_way(wide: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    double = engine(monkeypatch, succeed)
    told: list[tuple[int, int]] = []

    def start(argv: list[Path], **rest: object) -> Engine:
        process = Engine.start(double, argv, **rest)  # type: ignore[arg-type]
        process.pid = -len(double.built)
        return process

    monkeypatch.setattr(builds.processes, "start", start)
    monkeypatch.setattr(builds.processes, "give_way", lambda *given: told.append(given))
    builds.build(wide, jobs=2)
    assert double.built[:2] == ["long", "many"]
    # Those that began second of two, and never that of the longest chain.
    assert (-2, builds.BESIDE) in told
    assert -1 not in [process for process, _ in told]


def test_the_longest_of_what_is_left_counts(wide: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    double = engine(monkeypatch, lambda _: 0)
    building = builds._Builds(wide, {}, "rattler-build", 2, Step("packages", 0.0, 0.0))
    for pid, name in enumerate(["long", "many"], 1):
        process = double.start([Path("work", name, "request.json")], log=paths.LOGS / name)
        process.pid = pid
        recipe = next(each for each in wide.recipes if each.name == name)
        building.running[name] = builds._Running(recipe, process, -1, Path("work"), 0.0)  # type: ignore[arg-type]
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(builds.processes, "give_way", lambda *given: told.append(given))
    monkeypatch.setattr(builds, "LOOK", 0.0)
    seconds = {"long": 100.0, "many": 90.0}
    for spent in 0.0, 50.0:
        monkeypatch.setattr(
            builds.processes, "cpu_seconds", lambda _, spent=spent: {1: spent, 2: 0.0}
        )
        building._look(seconds)
    assert told == [(2, builds.BESIDE), (1, builds.BESIDE), (2, 0)]


def test_what_a_build_took_is_told_and_remembered(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine(monkeypatch, succeed)
    spans: list[Span] = []
    builds.build(plan, spans=spans)
    assert [span.recipe for span in spans] == ["c", "b", "theano-stack"]
    assert spans[0].begin <= spans[0].end <= spans[1].begin
    assert forecast.cpu_seconds(plan.recipes[:1]) == {"c": 1.0}


def test_an_interruption_tells_how_far_it_was(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(work: Path) -> int:
        if work.name == "b":
            raise KeyboardInterrupt
        return succeed(work)

    engine(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt, match="1 of 3 recipes are built"):
        builds.build(plan)
