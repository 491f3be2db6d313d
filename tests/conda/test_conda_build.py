"""conda-build on this project's recipes, by hand and as the engine of a build."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from commands import EXAMPLE, Conda, page
from test_packages import members

from builder import pipeline
from builder.common import paths
from builder.package import channel as channels
from builder.package import engine

BY_HAND, AS_ENGINE = 0, 1
PROJECT = ("builder", "envs", "recipes", "runtime", "LICENSE", "requirements.txt", "tasks.py")
# To be built: others than small ones take up to half an hour.
RECIPES = os.environ.get("THEANO_FAST_RECIPES", "zlib,six,pip").split(",")
CONDARC = "anaconda_upload: true\nconda_build: {root-dir: /nowhere}\n"


def blocks() -> list[str]:
    return page("Build a recipe with conda-build")


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_by_hand(conda_build: Conda, user: Conda, channel: Path, recipe: str) -> None:
    script = blocks()[BY_HAND].replace(EXAMPLE, f"file://{channel}")
    assert script.count("recipes/zlib ") == 1
    script = script.replace("recipes/zlib ", f"recipes/{recipe} ")
    user.run(script, paths.ROOT, THEANO_FAST_CACHE=str(paths.cache()))
    built = list((user.home / "bld").glob("*/*.conda"))
    assert built
    for package in built:
        (ours,) = channel.glob(f"*/{package.name}")
        assert {file.name for file in members(package)} == {file.name for file in members(ours)}


@pytest.mark.parametrize("recipe", RECIPES)
def test_as_the_engine_it_makes_the_locks_bytes(
    conda_build: Conda, user: Conda, recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{conda_build.bin}{os.pathsep}{os.environ['PATH']}")
    version, ours = (engine.version(name) for name in ("conda-build", "rattler-build"))
    if version != ours:
        pytest.skip(f"{conda_build.bin} has py-rattler-build {version}, the lock is of {ours}")
    project, cache = tmp_path / "project", tmp_path / "cache"
    for name in PROJECT:
        origin = paths.ROOT / name
        copy = shutil.copytree if origin.is_dir() else shutil.copy
        project.mkdir(exist_ok=True)
        copy(origin, project / name)
    # All else is in the cache.
    planned = pipeline.plan("openblas", pipeline.Options()).plan
    for name, key in planned.keys.items():
        if name != recipe:
            lend(paths.package_cache() / key, cache / "packages" / key)
    lend(paths.source_cache(), cache / "sources")
    (user.home / ".condarc").write_text(CONDARC)
    (flags,) = re.findall(r"--stack\S+ --engine\S+", blocks()[AS_ENGINE])
    told = user.run(
        f"{sys.executable} tasks.py lock {flags} --locked --offline",
        project,
        THEANO_FAST_CACHE=str(cache),
    )
    assert re.findall(r"^built +(\S+)", told, re.MULTILINE) == [recipe]
    log = (project / "build" / "logs" / f"{recipe}.log").read_text()
    assert re.search(rf"Building variant 1/\d+ for recipe {project}/recipes/{recipe}\b", log)


def lend(origin: Path, target: Path) -> None:
    """Give the files below a directory a second name below another one."""
    for file in origin.rglob("*"):
        if file.is_file():
            place = target / file.relative_to(origin)
            place.parent.mkdir(parents=True, exist_ok=True)
            channels.link(file, place)
