"""Provide the environment build/envs/openblas, small real builds, and Docker to the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from python_on_whales import DockerClient
from support import Project, Result, start_daemon

from builder import image_pipeline
from builder.common import errors, paths
from builder.common.processes import clean_environ, select_own_kernels
from builder.environment import envs
from builder.image import daemon
from builder.image.images import Image
from builder.options import Options
from builder.pipeline import Build
from builder.source.sources import copy_to, fetch


@pytest.fixture(scope="session")
def prefix() -> Path:
    """Return the prefix of the openblas environment."""
    envs.require_installed("openblas")
    return paths.ENVIRONMENTS / "openblas"


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Result]:
    """Return a function that runs a command with a new home directory.

    The command does not inherit the variables of ``processes.FOREIGN_VARIABLES`` and
    ``processes.KERNEL_VARIABLES``, such as PYTHONPATH and OPENBLAS_CORETYPE. Keyword arguments
    other than ``timeout`` (in seconds) add variables.
    """

    def start(*argv: str | Path, timeout: int = 600, **env: str) -> Result:
        clean = select_own_kernels(clean_environ())
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
def directory() -> Iterator[Path]:
    """Return a new directory in /tmp that any user may enter and write to."""
    directory = Path(f"/tmp/theano-fast-test-{os.getpid()}")
    directory.mkdir()
    directory.chmod(0o777)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerClient]:
    """Connect to the running Docker daemon. If none runs, start a daemon for the test session."""
    try:
        client = daemon.connect()
    except errors.HostToolMissing:
        with start_daemon(tmp_path_factory.mktemp("docker")) as client:
            os.environ["DOCKER_HOST"] = str(client.client_config.host)
            yield client
            del os.environ["DOCKER_HOST"]
    else:
        yield client


@pytest.fixture(scope="session")
def image(docker: DockerClient) -> Image:
    """Build and verify the openblas image; return the image."""
    try:
        return image_pipeline.build_image("openblas", Options())
    except errors.HostToolMissing as error:
        pytest.skip(str(error))


# The recipe of a metapackage that depends only on zlib.
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
    """Return a copy of the project whose stacks contain only zlib, so that a build takes seconds.

    The sources and the builds are real. The copy has its own cache.
    """
    root = tmp_path / "project"
    project = Project(root, PROJECT, root / "cache")
    # Fill the cache with the compilers and build tools that zlib needs, so that only zlib is built.
    plan = Build.create("openblas", Options()).plan
    for name in sorted(plan.collect_needs("zlib")):
        shutil.copytree(paths.RECIPES / name, root / "recipes" / name)
        entry = Path("packages", plan.keys[name])
        shutil.copytree(paths.get_cache() / entry, project.cache / entry, copy_function=os.link)
    (root / "recipes" / "theano-stack").mkdir()
    (root / "recipes" / "theano-stack" / "recipe.yaml").write_text(METAPACKAGE)
    return project


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Return a directory with zlib's source archive, as `./invoke fetch --to` writes it."""
    plan = Build.create("openblas", Options()).plan
    recipes = {recipe.name: recipe for recipe in plan.recipes}
    directory = tmp_path / "sources"
    copy_to(directory, fetch(recipes["zlib"].sources))
    return directory


NO_NETWORK = ("unshare", "--net")


@pytest.fixture
def no_network() -> tuple[str, ...]:
    """Return a command prefix that runs a command in a network namespace without interfaces."""
    if subprocess.run([*NO_NETWORK, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("unshare --net needs root")
    return NO_NETWORK
