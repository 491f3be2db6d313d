"""An archive of the openblas environment, unpacked elsewhere by another user."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from builder import pipeline
from builder.common import processes
from builder.common.errors import CommandFailed
from builder.environment import packs

TOP = packs.top("openblas")
# What their init scripts for bash are, by the modules' implementation.
MODULES = {
    "lmod": Path("/usr/share/lmod/lmod/init/bash"),
    "environment-modules": Path("/usr/share/modules/init/bash"),
}

User = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def archive(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of build/envs/openblas' lock."""
    _, lock = pipeline.lock("openblas", pipeline.Options())
    directory = tmp_path_factory.mktemp("packs")
    for file in (directory / "first.tar.gz", directory / "second.tar.gz"):
        packs.write(lock, "2.36", file)
    assert (directory / "first.tar.gz").read_bytes() == (directory / "second.tar.gz").read_bytes()
    return directory / "first.tar.gz"


@pytest.fixture
def user(place: Path) -> User:
    """Run a command as a user who has nothing but this place."""
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    def run(*argv: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*(drop if os.geteuid() == 0 else []), *map(str, argv)],
            env={"PATH": os.environ["PATH"], "HOME": str(place), "TMPDIR": str(place)},
            cwd=place,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def unpacked(archive: Path, place: Path, user: User) -> Path:
    """The environment, unpacked by that user."""
    shutil.copy(archive, place / "pack.tar.gz")
    assert user("tar", "-xzf", "pack.tar.gz").returncode == 0
    done = user(f"{TOP}/{packs.UNPACK}")
    assert done.returncode == 0, done.stderr
    return place / TOP


def test_programs_start_with_nothing_activated(unpacked: Path, user: User) -> None:
    for command in (["theano-fast", "--version"], ["pip", "--version"]):
        done = user(unpacked / "bin" / command[0], *command[1:])
        assert done.returncode == 0, done.stderr
    program = "import theano, numpy; print(theano.config.blas.ldflags)"
    found = user(unpacked / "bin" / "python", "-c", program)
    assert f"-L{unpacked}/lib" in found.stdout, found.stderr
    verified = user(unpacked / "bin" / "theano-fast", "verify", "--check", "blas", "hermetic")
    assert verified.returncode == 0, verified.stdout
    left = [
        file
        for file in unpacked.rglob("*")
        if file.is_file()
        and file.suffix != ".pyc"
        and bytes(packs.PLACEHOLDER) in file.read_bytes()
    ]
    assert left == [unpacked / packs.LIST]


def test_a_moved_environment_says_what_to_do(unpacked: Path, place: Path, user: User) -> None:
    again = user(unpacked / packs.UNPACK)
    assert (again.returncode, "before" in again.stdout) == (0, True)
    unpacked.rename(place / "moved")
    done = user(place / "moved" / packs.UNPACK)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"theano-fast-unpack: {place}/moved was unpacked for {unpacked}: "
        "unpack the archive again, here"
    ]


def test_a_host_that_cannot_run_it_is_told_what_it_needs(
    archive: Path, place: Path, user: User
) -> None:
    shutil.copy(archive, place / "pack.tar.gz")
    assert user("tar", "-xzf", "pack.tar.gz").returncode == 0
    (python,) = (place / TOP / "bin").glob("python3.11")
    python.unlink()
    done = user(f"{TOP}/{packs.UNPACK}")
    assert done.returncode == 1
    assert "it needs glibc 2.36 or newer" in done.stderr


def test_a_part_of_an_archive_is_an_error(archive: Path, place: Path) -> None:
    part = place / "part.tar.gz"
    part.write_bytes(archive.read_bytes()[:1_000_000])
    with pytest.raises(CommandFailed, match="nexpected"):
        processes.run(["tar", "-xzf", part, "-C", place])


@pytest.mark.parametrize("modules", MODULES)
def test_its_module_can_be_loaded(unpacked: Path, user: User, modules: str) -> None:
    if not MODULES[modules].exists():
        pytest.skip(f"{modules} is not installed")
    script = f"""
        . {MODULES[modules]}
        module use {unpacked}/share/modulefiles
        module load theano-fast/openblas
        theano-fast --version
        module unload theano-fast/openblas
        command -v theano-fast || echo gone
    """
    done = user("bash", "-c", script)
    assert done.stdout.splitlines()[-2:] == ["theano-fast 0.1.0", "gone"], done.stderr
