"""Integration tests use the real stack in build/envs/openblas, and real small builds."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from builder import pipeline
from builder.common import paths
from builder.common.processes import clean_environ
from builder.environment import envs
from builder.source.sources import collect, fetch


def require(*programs: str, root: bool = False) -> None:
    """Skip a test where the host lacks a program, or the rights of root."""
    if root and os.geteuid() != 0:
        pytest.skip(f"{' and '.join(programs)} needs root")
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on PATH")


Result = subprocess.CompletedProcess[str]


def free_port() -> int:
    """A port of this machine that nothing listens on; where hosts are bare, it has no name."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


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


class Project:
    """A copy of parts of this project, whose tasks can be run."""

    def __init__(self, root: Path, parts: tuple[str, ...], cache: Path) -> None:
        self.root = root
        self.cache = cache
        for name in parts:
            origin, target = paths.ROOT / name, root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if origin.is_dir():
                shutil.copytree(origin, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(origin, target)

    def start(
        self, *arguments: str, wrap: tuple[str, ...] = (), **env: str
    ) -> subprocess.Popen[str]:
        """Start an Invoke task of the copy."""
        return subprocess.Popen(
            [*wrap, sys.executable, "tasks.py", *arguments],
            cwd=self.root,
            env={**os.environ, "THEANO_FAST_CACHE": str(self.cache), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A shell's background jobs ignore it, and so would all that they start.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )

    def invoke(self, *arguments: str, wrap: tuple[str, ...] = (), **env: str) -> tuple[int, str]:
        """Run an Invoke task of the copy; its exit status and output."""
        process = self.start(*arguments, wrap=wrap, **env)
        output, _ = process.communicate(timeout=300)
        return process.returncode, output

    def on_terminal(
        self, monkeypatch: pytest.MonkeyPatch, *arguments: str, **env: str
    ) -> tuple[int, str]:
        """Run an Invoke task of the copy on a terminal; its exit status and what it wrote there."""
        if not Path("/dev/ptmx").exists():
            pytest.skip("no terminal can be opened here")
        for name, value in {"TERM": "xterm", "THEANO_FAST_CACHE": str(self.cache), **env}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(self.root)
        shown = bytearray()

        def read(descriptor: int) -> bytes:
            shown.extend(part := os.read(descriptor, 4096))
            return part

        status = pty.spawn([sys.executable, "tasks.py", *arguments], read, lambda _: b"")
        return status, shown.decode()

    def half_written(self) -> list[Path]:
        """Files and directories with a temporary name, or incomplete cache entries."""
        left = list((self.cache / "sources").rglob(".part-*"))
        packages = self.cache / "packages"
        if packages.exists():
            left += [
                entry
                for entry in packages.iterdir()
                if not entry.name.startswith(".") and not (entry / "packages.json").exists()
            ]
        return left


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
