"""The scheduler, with a process that stands for the engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builder import builds, paths, recipes, stacks
from builder import packages as store
from builder.errors import BuildFailed, DiskFull
from builder.packages import Plan
from builder.toolchain import Toolchain

TOOLCHAIN = Toolchain("12.2.0", "2.36", "gcc")
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

    def poll(self) -> int:
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
    monkeypatch.setattr(builds.engine, "clock", lambda _: Path("/clock.so"))
    monkeypatch.setattr(builds.channel, "place", lambda _, where: where.mkdir(parents=True))
    stack = stacks.load("openblas")
    rendered = recipes.load_all(stack, TOOLCHAIN)
    return store.plan(rendered, recipes.closure(rendered), {}, TOOLCHAIN)


def engine(monkeypatch: pytest.MonkeyPatch, outcome: Callable[[Path], int]) -> Engine:
    double = Engine(outcome)
    monkeypatch.setattr(builds.run, "start", double.start)
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


def test_a_failure_names_recipe_reason_and_log(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    engine(monkeypatch, lambda work: succeed(work) if work.name == "c" else 1)
    with pytest.raises(BuildFailed) as failure:
        builds.build(plan)
    message = str(failure.value)
    assert "recipe b failed: the compiler's complaint" in message
    assert "| cc -c x.c" in message
    assert str(paths.LOGS / "b.log") in message
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

    monkeypatch.setattr(builds.run, "start", start)
    with pytest.raises(DiskFull, match="recipe c: no room left"):
        builds.build(plan)
