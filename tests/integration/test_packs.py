"""Unpack an archive of the openblas environment in a different directory, as a different user."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support import find_compiled_modules

from builder.common import processes
from builder.common.errors import CommandFailed
from builder.environment import packs
from builder.options import Options
from builder.pipeline import Build

# The fixture `archive` packs the environment twice, which takes minutes.
pytestmark = pytest.mark.thorough

TOP = packs.get_top_directory("openblas")
# The init script for bash of each implementation of environment modules.
MODULES = {
    "lmod": Path("/usr/share/lmod/lmod/init/bash"),
    "environment-modules": Path("/usr/share/modules/init/bash"),
}

User = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def archive(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write two archives of the openblas stack; return the first.

    The archives must have equal bytes. "2.36" is the glibc that the archive requires.
    """
    lock = Build.create("openblas", Options()).lock()
    directory = tmp_path_factory.mktemp("packs")
    for file in (directory / "first.tar.gz", directory / "second.tar.gz"):
        packs.write_archive(lock, "2.36", file)
    assert (directory / "first.tar.gz").read_bytes() == (directory / "second.tar.gz").read_bytes()
    return directory / "first.tar.gz"


@pytest.fixture
def user(directory: Path) -> User:
    """Return a function that runs a command in ``directory``. Root runs it as the user nobody."""
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    def run(*argv: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*(drop if os.geteuid() == 0 else []), *map(str, argv)],
            env={"PATH": os.environ["PATH"], "HOME": str(directory), "TMPDIR": str(directory)},
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def unpacked(archive: Path, directory: Path, user: User) -> Path:
    """Unpack the archive as ``user``; return the prefix of the environment."""
    shutil.copy(archive, directory / "pack.tar.gz")
    assert user("tar", "-xzf", "pack.tar.gz").returncode == 0
    done = user(f"{TOP}/{packs.UNPACK}")
    assert done.returncode == 0, done.stderr
    return directory / TOP


def test_programs_start_without_activation(unpacked: Path, user: User) -> None:
    for command in (["theano-fast", "--version"], ["pip", "--version"]):
        done = user(unpacked / "bin" / command[0], *command[1:])
        assert done.returncode == 0, done.stderr
    program = "import theano, numpy; print(theano.config.blas.ldflags)"
    result = user(unpacked / "bin" / "python", "-v", "-c", program)
    assert f"-L{unpacked}/lib" in result.stdout, result.stderr
    assert find_compiled_modules(result.stderr) == []
    verified = user(unpacked / "bin" / "theano-fast", "verify", "--check", "blas", "hermetic")
    assert verified.returncode == 0, verified.stdout
    leftovers = [
        file
        for file in unpacked.rglob("*")
        if file.is_file()
        and file.suffix != ".pyc"
        and bytes(packs.PLACEHOLDER) in file.read_bytes()
    ]
    assert leftovers == [unpacked / packs.LIST]


def test_a_moved_environment_is_an_error_with_a_hint(
    unpacked: Path, directory: Path, user: User
) -> None:
    """The script that completes an unpacked environment refuses to run in a moved copy."""
    again = user(unpacked / packs.UNPACK)
    assert (again.returncode, "already" in again.stdout) == (0, True)
    unpacked.rename(directory / "moved")
    done = user(directory / "moved" / packs.UNPACK)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"theano-fast-unpack: {directory}/moved was unpacked at {unpacked}: "
        "unpack the archive again at this path"
    ]


def test_an_old_glibc_is_an_error_with_the_requirement(
    archive: Path, directory: Path, user: User
) -> None:
    """If Python cannot start, the error names the glibc that the archive requires."""
    shutil.copy(archive, directory / "pack.tar.gz")
    assert user("tar", "-xzf", "pack.tar.gz").returncode == 0
    (python,) = (directory / TOP / "bin").glob("python3.11")
    python.unlink()
    done = user(f"{TOP}/{packs.UNPACK}")
    assert done.returncode == 1
    assert "it needs glibc 2.36 or newer" in done.stderr


def test_a_truncated_pack_is_an_error(archive: Path, directory: Path) -> None:
    truncated = directory / "truncated.tar.gz"
    truncated.write_bytes(archive.read_bytes()[:1_000_000])
    with pytest.raises(CommandFailed, match="nexpected"):
        processes.run(["tar", "-xzf", truncated, "-C", directory])


@pytest.mark.parametrize("modules", MODULES)
def test_the_module_file_can_be_loaded(unpacked: Path, user: User, modules: str) -> None:
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
