"""Integration tests use the real stack in build/envs/openblas, and real small builds."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from python_on_whales import DockerClient
from support import Project, Result, started

from builder import image_pipeline, pipeline
from builder.common import errors, paths
from builder.common.processes import clean_environ
from builder.environment import envs
from builder.image import daemon
from builder.image.images import Image
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


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that any user may enter and write to."""
    directory = Path(f"/tmp/theano-fast-test-{os.getpid()}")
    directory.mkdir()
    directory.chmod(0o777)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerClient]:
    """The daemon that runs, else one started for the session."""
    try:
        client = daemon.connect()
    except errors.HostToolMissing:
        with started(tmp_path_factory.mktemp("docker")) as client:
            os.environ["DOCKER_HOST"] = str(client.client_config.host)
            yield client
            del os.environ["DOCKER_HOST"]
    else:
        yield client


@pytest.fixture(scope="session")
def image(docker: DockerClient) -> Image:
    """The openblas image, which proved itself."""
    try:
        return image_pipeline.build("openblas", pipeline.Options())
    except errors.HostToolMissing as error:
        pytest.skip(str(error))


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
