"""Integration tests use the real stack in build/envs/openblas, and real small builds."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support import Project, Result

from builder import pipeline
from builder.common import paths
from builder.common.processes import clean_environ
from builder.environment import envs
from builder.source.sources import collect, fetch


@pytest.fixture(scope="session")
def prefix() -> Path:
    """The openblas environment."""
    envs.require("openblas")
    return paths.ENVIRONMENTS / "openblas"


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Result]:
    """Run a command as a user who set nothing, with a home of its own."""

    def start(*argv: str | Path, timeout: int = 600, **env: str) -> Result:
        clean = clean_environ()
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        return subprocess.run(
            list(map(str, argv)),
            env={**clean, "HOME": str(home), **env},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return start


METAPACKAGE = """schema_version: 1
package: {name: theano-stack, version: '1.0.5'}
build: {string: '0_${{ stack }}'}
requirements: {run: [zlib]}
about: {license: MIT, summary: a stack of one library}
"""


PROJECT = (
    "LICENSE",
    "builder",
    "invoke",
    "recipes/unpack-debs.py",
    "recipes/variants.yaml",
    "recipes/zlib",
    "requirements.txt",
    "tasks.py",
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose one stack is zlib: real sources and builds, in seconds."""
    root = tmp_path / "project"
    made = Project(root, PROJECT, root / "cache")
    # Compilers and the like are built already.
    planned = pipeline.plan("openblas", pipeline.Options()).plan
    for name in sorted(planned.closure("zlib")):
        shutil.copytree(paths.RECIPES / name, root / "recipes" / name)
        entry = Path("packages", planned.keys[name])
        shutil.copytree(paths.cache() / entry, made.cache / entry, copy_function=os.link)
    (root / "recipes" / "theano-stack").mkdir()
    (root / "recipes" / "theano-stack" / "recipe.yaml").write_text(METAPACKAGE)
    return made


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A directory with zlib's source, as `invoke fetch --to` makes it."""
    planned = pipeline.plan("openblas", pipeline.Options())
    recipes = {recipe.name: recipe for recipe in planned.plan.recipes}
    directory = tmp_path / "sources"
    collect(fetch(recipes["zlib"].sources), directory)
    return directory


NO_NETWORK = ("unshare", "--net")


@pytest.fixture
def no_network() -> tuple[str, ...]:
    """The command prefix that runs a command in a network namespace without interfaces."""
    if subprocess.run([*NO_NETWORK, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("unshare --net needs root")
    return NO_NETWORK
