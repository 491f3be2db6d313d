"""Provide conda, conda-build, and the channel build/channel to the tests."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from commands import Conda, read_page

from builder import publishing
from builder.common import paths
from builder.environment import envs
from builder.options import Options
from builder.stack import stacks

# This variable lists the bin directories of the conda installations to test, separated by colons.
VARIABLE = "THEANO_FAST_CONDA"
NO_CONDA = (
    f"conda is not on PATH: install it, or name its bin directory in {VARIABLE}; "
    "docs/conda.md lists the versions and shows how to build them from source"
)


def _find_installations() -> list[Path | None]:
    """List the bin directories in VARIABLE, or of conda on PATH; without conda, return [None]."""
    if directories := os.environ.get(VARIABLE):
        return [Path(entry).resolve() for entry in directories.split(os.pathsep)]
    program = shutil.which("conda")
    return [Path(program).parent if program else None]


def _format_name(directory: Path | None) -> str:
    """Return the name of an installation in the test's ID."""
    return "none" if directory is None else directory.parent.name


@pytest.fixture(scope="session", params=_find_installations(), ids=_format_name)
def conda(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Conda]:
    """Return a conda installation, with a home directory that all tests of the session use."""
    if request.param is None:
        pytest.skip(NO_CONDA)
    if not (request.param / "conda").exists():
        pytest.fail(f"{VARIABLE}: {request.param} has no conda")
    home = tmp_path_factory.mktemp("conda")
    yield Conda(request.param, home)
    shutil.rmtree(home)


@pytest.fixture
def user(conda: Conda, tmp_path: Path) -> Iterator[Conda]:
    """Return a conda installation with a new home directory."""
    yield conda.change_home(tmp_path / "home")
    shutil.rmtree(tmp_path / "home")


@pytest.fixture
def verify(conda: Conda, tmp_path: Path) -> Callable[[Path], None]:
    """Return a function that runs `theano-fast verify` of an environment.

    The function omits check_blas, because its times vary on a busy host. The home directory of the
    session keeps the compiled modules for later tests.
    """

    def start(prefix: Path) -> None:
        program = f"'{prefix}/bin/theano-fast' verify"
        lines = conda.run(f"{program} --list", tmp_path).splitlines()
        names = {line.split()[0] for line in lines} - {"check_blas"}
        output = conda.run(f"{program} --check {' '.join(sorted(names))}", tmp_path)
        assert " 0 failed" in output

    return start


@pytest.fixture(scope="session")
def conda_build(conda: Conda) -> Conda:
    """Return a conda installation that contains conda-build."""
    if not (conda.bin / "conda-build").exists():
        pytest.skip(
            f"{conda.bin} has no conda-build; docs/conda.md shows how to build it from source"
        )
    return conda


@pytest.fixture(scope="session")
def channel() -> Path:
    """Return the built channel; fail if the openblas stack is not built."""
    if envs.read_installed_digest("openblas") is None:
        pytest.fail("build/envs/openblas is not built: ./invoke build --stack=openblas")
    return paths.CHANNEL


@contextmanager
def serve(directory: Path) -> Iterator[str]:
    """Serve ``directory`` with the command in docs/conda.md, on a free port; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    (command,) = read_page("Serve the channel")
    assert command.count("build/channel") == 1
    command = command.replace("8000", f"--bind 127.0.0.1 {port}")
    with subprocess.Popen(
        ["sh", "-c", f"exec {command.replace('build/channel', shlex.quote(str(directory)))}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    ) as server:
        for _ in range(100):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", int(port))) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
        server.terminate()


@pytest.fixture(scope="session")
def served(channel: Path) -> Iterator[str]:
    """Serve the built channel over HTTP; yield its address."""
    with serve(channel) as address:
        yield address


@pytest.fixture(scope="session", params=["file", "http"])
def published(
    request: pytest.FixtureRequest, channel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, str]]:
    """Publish the openblas stack; yield the directory of the channel and its address.

    The address is a file URL or an HTTP URL.
    """
    directory = tmp_path_factory.mktemp("published")
    with serve(directory) if request.param == "http" else nullcontext("") as address:
        publishing.publish_packages(["openblas"], Options(offline=True), directory, address)
        yield directory, address or directory.as_uri()


@pytest.fixture(scope="session", params=["file", "http"])
def address(request: pytest.FixtureRequest, channel: Path, served: str) -> str:
    """Return the file URL or the HTTP URL of the built channel."""
    return f"file://{channel}" if request.param == "file" else served


@pytest.fixture(params=[row.name for row in stacks.load_all()])
def stack(request: pytest.FixtureRequest) -> str:
    """Return the name of a stack; skip the test if the stack is not built."""
    if envs.read_installed_digest(request.param) is None:
        pytest.skip(f"not built: ./invoke build --stack={request.param}")
    return str(request.param)
