"""Build recipes with the command of docs/conda.md, and with conda-build as the builder's engine."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from commands import EXAMPLE, Conda, read_page
from test_packages import list_members

from builder.common import paths
from builder.options import Options
from builder.package import channel as channels
from builder.package import engine
from builder.pipeline import Build

# The positions of two code blocks in the page's section.
BY_HAND, AS_ENGINE = 0, 1
PROJECT = ("builder", "envs", "recipes", "runtime", "LICENSE", "requirements.txt", "tasks.py")
# Build only small recipes by default, because other recipes take up to half an hour.
RECIPES = os.environ.get("THEANO_FAST_RECIPES", "zlib,six,pip").split(",")
# Settings of a user's .condarc that the builder must ignore.
CONDARC = "anaconda_upload: true\nconda_build: {root-dir: /nowhere}\n"


def read_blocks() -> list[str]:
    """Return the code blocks about conda-build in docs/conda.md."""
    return read_page("Build a recipe with conda-build")


@pytest.mark.parametrize("recipe", RECIPES)
def test_conda_build_builds_the_channels_packages(
    conda_build: Conda, user: Conda, channel: Path, recipe: str
) -> None:
    """The documented command builds packages with the files of the channel's packages."""
    script = read_blocks()[BY_HAND].replace(EXAMPLE, f"file://{channel}")
    assert script.count("recipes/zlib ") == 1
    script = script.replace("recipes/zlib ", f"recipes/{recipe} ")
    user.run(script, paths.ROOT, THEANO_FAST_CACHE=str(paths.get_cache()))
    packages = list((user.home / "bld").glob("*/*.conda"))
    assert packages
    for package in packages:
        (channel_package,) = channel.glob(f"*/{package.name}")
        assert {file.name for file in list_members(package)} == {
            file.name for file in list_members(channel_package)
        }


@pytest.mark.parametrize("recipe", RECIPES)
def test_conda_build_as_the_engine_builds_the_lock_files_bytes(
    conda_build: Conda, user: Conda, recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`lock --locked` builds only the recipe, and finds the hashes of the lock file.

    The test needs a conda-build with the builder's version of rattler-build.
    """
    monkeypatch.setenv("PATH", f"{conda_build.bin}{os.pathsep}{os.environ['PATH']}")
    version, lock_version = (engine.get_version(name) for name in ("conda-build", "rattler-build"))
    if version != lock_version:
        pytest.skip(
            f"{conda_build.bin} has py-rattler-build {version}; the lock file needs {lock_version}"
        )
    project, cache = tmp_path / "project", tmp_path / "cache"
    for name in PROJECT:
        origin = paths.ROOT / name
        copy = shutil.copytree if origin.is_dir() else shutil.copy
        project.mkdir(exist_ok=True)
        copy(origin, project / name)
    # Fill the cache with all packages except the packages of the recipe.
    plan = Build.create("openblas", Options()).plan
    for name, key in plan.keys.items():
        if name != recipe:
            link_files(paths.get_package_cache() / key, cache / "packages" / key)
    link_files(paths.get_source_cache(), cache / "sources")
    (user.home / ".condarc").write_text(CONDARC)
    (flags,) = re.findall(r"--stack\S+ --engine\S+", read_blocks()[AS_ENGINE])
    output = user.run(
        f"{sys.executable} tasks.py lock {flags} --locked --offline",
        project,
        THEANO_FAST_CACHE=str(cache),
    )
    assert re.findall(r"^built +(\S+)", output, re.MULTILINE) == [recipe]
    log = (project / "build" / "logs" / f"{recipe}.log").read_text()
    assert re.search(rf"Building variant 1/\d+ for recipe {project}/recipes/{recipe}\b", log)


def link_files(origin: Path, target: Path) -> None:
    """Link, or copy, all files below ``origin`` to the same relative paths below ``target``."""
    for file in origin.rglob("*"):
        if file.is_file():
            target_file = target / file.relative_to(origin)
            target_file.parent.mkdir(parents=True, exist_ok=True)
            channels.link_or_copy(file, target_file)
