"""Test the scheduler of package builds; a fake engine replaces rattler-build."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import BuildFailed, DiskFull
from builder.package import builds, package_cache
from builder.package.package_cache import Plan
from builder.package.steps import Step
from builder.stack import recipes, stacks
from builder.timing import forecast

RECIPE = """schema_version: 1
package: {{name: {name}, version: '1.0'}}
requirements: {{host: [{host}]}}
"""


class Engine:
    """A fake engine, and a fake process of the engine, which ends at once.

    Attributes:
        outcome: a function that writes the packages into a recipe's work directory, and returns the
            exit code.
        built: the names of the recipes that were built, in order.
    """

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

    pid = 1 << 30  # No process has this id.

    def poll(self) -> int:
        return 0

    def wait(self) -> int:
        return 0


def succeed(work: Path) -> int:
    """Write a package and its measured CPU time; return the exit code 0."""
    output = work / "output" / "linux-64"
    output.mkdir(parents=True)
    (output / f"{work.name}-1.0-h0_0.conda").write_text(work.name)
    (work / "result.json").write_text(json.dumps({"cpu_seconds": 1.0}))
    return 0


@pytest.fixture
def plan(recipes_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Plan:
    """Return a plan of three recipes: theano-stack requires b, and b requires c."""
    for name, host in (("theano-stack", "b"), ("b", "c"), ("c", "")):
        (recipes_dir / name).mkdir(parents=True)
        (recipes_dir / name / "recipe.yaml").write_text(RECIPE.format(name=name, host=host))
    monkeypatch.setattr(paths, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(builds.channel, "add_packages", lambda _, where: where.mkdir(parents=True))
    stack = stacks.load("openblas")
    rendered = recipes.load_all(stack)
    return package_cache.make_plan(rendered, recipes.collect_dependencies(rendered), {})


def replace_engine(monkeypatch: pytest.MonkeyPatch, outcome: Callable[[Path], int]) -> Engine:
    """Replace the engine by a fake engine with this outcome; return the fake engine."""
    engine = Engine(outcome)
    monkeypatch.setattr(builds.processes, "start", engine.start)
    return engine


def test_a_recipe_is_built_once_and_after_its_dependencies(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = replace_engine(monkeypatch, succeed)
    first = builds.build_missing(plan).packages
    assert engine.built == ["c", "b", "theano-stack"]
    assert builds.build_missing(plan).packages == first
    assert len(engine.built) == 3
    assert not [entry for entry in paths.get_work_directory().iterdir() if entry.is_dir()]


def test_unpacked_packages_with_the_names_of_new_packages_are_removed(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    pkgs = paths.get_engine_cache() / "pkgs"
    stems = [f"{o.name}-{o.version}-{o.build}" for recipe in plan.recipes for o in recipe.outputs]
    for stem in [*stems, "other-1.0-0"]:
        (pkgs / stem / "info").mkdir(parents=True)
    replace_engine(monkeypatch, succeed)
    builds.build_missing(plan)
    assert [recipe.name for recipe in pkgs.iterdir()] == ["other-1.0-0"]


def test_a_recipe_waits_for_missing_indirect_dependencies(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_engine(monkeypatch, succeed)
    builds.build_missing(plan)
    for name in ("c", "theano-stack"):
        shutil.rmtree(paths.get_package_cache() / plan.keys[name])
    engine = replace_engine(monkeypatch, succeed)
    builds.build_missing(plan)
    assert engine.built == ["c", "theano-stack"]


def test_the_error_of_a_failed_build_names_recipe_reason_and_log(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_engine(monkeypatch, lambda work: succeed(work) if work.name == "c" else 1)
    with pytest.raises(BuildFailed) as failure:
        builds.build_missing(plan)
    message = str(failure.value)
    assert "recipe b failed: the compiler's complaint" in message
    assert "| cc -c x.c" in message
    assert str(paths.LOGS / "b.log") in message
    assert str(paths.get_work_directory() / "b") in message
    assert (paths.get_work_directory() / "b").is_dir()
    assert "run again" in message
    engine = replace_engine(monkeypatch, succeed)
    builds.build_missing(plan)
    assert engine.built == ["b", "theano-stack"]


def test_a_full_disk_has_its_own_error(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = replace_engine(monkeypatch, lambda _: 1)

    def start(argv: list[Path], *, log: Path, **options: object) -> Engine:
        process = Engine.start(engine, argv, log=log, **options)
        log.write_text("cc: write error: No space left on device\n")
        return process

    monkeypatch.setattr(builds.processes, "start", start)
    with pytest.raises(DiskFull, match="recipe c: no space left"):
        builds.build_missing(plan)


@pytest.fixture
def wide_plan(recipes_dir: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Return a plan with a long chain of recipes and a recipe with many dependents.

    The chain consists of ``long`` (500 CPU s), ``end`` (100 CPU s) and ``theano-stack``. ``l1``,
    ``l2`` and ``l3`` require ``many``. These five recipes take 20 CPU s each.
    """
    hosts = {"many": "", "long": "", "l1": "many", "l2": "many", "l3": "many", "end": "long"}
    for name, host in {**hosts, "theano-stack": "l1, l2, l3, end"}.items():
        (recipes_dir / name).mkdir(exist_ok=True)
        (recipes_dir / name / "recipe.yaml").write_text(RECIPE.format(name=name, host=host))
    seconds = {"long": 500.0, "end": 100.0}
    costs = {"recipes": {**dict.fromkeys((*hosts, "theano-stack"), 20.0), **seconds}, "stages": {}}
    monkeypatch.setattr(forecast, "_read_costs", lambda: costs)
    rendered = recipes.load_all(stacks.load("openblas"))
    return package_cache.make_plan(rendered, recipes.collect_dependencies(rendered), {})


def test_the_longest_chain_starts_first(wide_plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = replace_engine(monkeypatch, succeed)
    builds.build_missing(wide_plan, jobs=1)
    assert engine.built == ["long", "end", "many", "l1", "l2", "l3", "theano-stack"]


def test_short_builds_start_first(wide_plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = replace_engine(monkeypatch, succeed)
    forecast._read_costs()["recipes"] |= {
        "many": builds.SHORT_CPU_SECONDS / 2,
        "l2": builds.SHORT_CPU_SECONDS / 2,
    }
    builds.build_missing(wide_plan, jobs=1)
    assert engine.built == ["many", "l2", "long", "end", "l1", "l3", "theano-stack"]


def test_builds_off_the_critical_path_get_a_lower_priority(
    wide_plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = replace_engine(monkeypatch, succeed)
    changes: list[tuple[int, int]] = []

    def start(argv: list[Path], **options: object) -> Engine:
        process = Engine.start(engine, argv, **options)  # type: ignore[arg-type]
        process.pid = -len(engine.built)
        return process

    monkeypatch.setattr(builds.processes, "start", start)
    monkeypatch.setattr(builds.processes, "lower_priority", lambda *change: changes.append(change))
    builds.build_missing(wide_plan, jobs=2)
    assert engine.built[:2] == ["long", "many"]
    # Process -2 builds `many`, which is not on the critical path, at a lower priority. Process -1
    # builds `long`, which is on the critical path, and keeps its priority.
    assert (-2, builds.BACKGROUND_NICENESS) in changes
    assert -1 not in [process for process, _ in changes]


def test_the_critical_path_depends_on_the_remaining_work(
    wide_plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = replace_engine(monkeypatch, lambda _: 0)
    scheduler = builds._Scheduler(wide_plan, {}, "rattler-build", 2, Step("packages", 0.0, 0.0))
    for pid, name in enumerate(["long", "many"], 1):
        process = engine.start([Path("work", name, "request.json")], log=paths.LOGS / name)
        process.pid = pid
        recipe = next(recipe for recipe in wide_plan.recipes if recipe.name == name)
        scheduler.running[name] = builds._Build(recipe, process, -1, Path("work"), 0.0)  # type: ignore[arg-type]
    changes: list[tuple[int, int]] = []
    monkeypatch.setattr(builds.processes, "lower_priority", lambda *change: changes.append(change))
    monkeypatch.setattr(builds, "UPDATE_INTERVAL", 0.0)
    seconds = {"long": 100.0, "many": 90.0}
    for cpu_seconds in 0.0, 50.0:
        monkeypatch.setattr(
            builds.processes,
            "measure_cpu_seconds",
            lambda _, cpu_seconds=cpu_seconds: {1: cpu_seconds, 2: 0.0},
        )
        scheduler._update(seconds)
    assert changes == [(2, builds.BACKGROUND_NICENESS), (1, builds.BACKGROUND_NICENESS), (2, 0)]


def test_the_duration_of_a_build_is_recorded(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_engine(monkeypatch, succeed)
    spans = builds.build_missing(plan).spans
    assert [span.recipe for span in spans] == ["c", "b", "theano-stack"]
    assert spans[0].begin <= spans[0].end <= spans[1].begin
    assert forecast.estimate_cpu_seconds(plan.recipes[:1]) == {"c": 1.0}


def test_an_interruption_reports_the_recipes_built(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(work: Path) -> int:
        if work.name == "b":
            raise KeyboardInterrupt
        return succeed(work)

    replace_engine(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt, match="1 of 3 recipes are built"):
        builds.build_missing(plan)
