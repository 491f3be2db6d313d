"""Use an environment that conda installed, and inspect its contents."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Conda, follow, list_installed, read_first_lines, read_lock, read_page

from builder.common import paths
from builder.environment import envs

Verify = Callable[[Path], None]

NAME = "theano-openblas"


@pytest.fixture(scope="module")
def made(conda: Conda, served: str) -> Conda:
    """Install openblas from the lock file and over HTTP; return the conda."""
    user = conda.at(conda.home / "made")
    file = shutil.copy(paths.LOCKS / "openblas" / envs.LOCK_NAME, user.home)
    follow(user, Path(file), served)
    return user


@pytest.fixture(scope="module")
def prefix(made: Conda) -> Path:
    """Return the prefix of this environment."""
    return made.prefix(NAME)


def test_conda_lists_the_lock(made: Conda, served: str, tmp_path: Path) -> None:
    output = made.run(f"conda list --name {NAME} --explicit --sha256", tmp_path)
    lines = {line.rpartition("/")[2] for line in output.splitlines() if line.startswith(served)}
    assert lines == {f"{file}#{sha256}" for file, sha256 in read_lock("openblas").items()}


def test_the_environment_can_be_activated(made: Conda, tmp_path: Path) -> None:
    script = f"""
        eval "$(conda shell.posix hook)"
        conda activate {NAME}
        python -c "import sys, theano; print(sys.prefix, theano.config.blas.ldflags)"
        conda deactivate
    """
    prefix = made.prefix(NAME)
    assert f'{prefix} "-L{prefix}/lib" -lopenblas\n' in made.run(script, tmp_path)


def test_pip_sees_a_whole_environment(made: Conda, prefix: Path, tmp_path: Path) -> None:
    listing = made.run(f"{prefix}/bin/python -m pip list --format=json", tmp_path)
    names = {row["name"].lower() for row in json.loads(listing.splitlines()[-1])}
    assert {"numpy", "scipy", "theano", "theano-fast"} <= names
    assert "No broken requirements" in made.run(f"{prefix}/bin/pip check", tmp_path)


# Prints the modules that Python compiles at each start if it cannot write to the environment.
UNCOMPILED = """
import importlib.machinery, sys
sys.dont_write_bytecode = True
import scipy.sparse.linalg, theano.tensor.nnet, theano_fast.cli
class Loader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data, path, **options):
        print(self.name)
        return super().source_to_code(data, path, **options)
for name, module in sorted(sys.modules.items()):
    if isinstance(getattr(module, "__loader__", None), Loader.__base__) and name != "__main__":
        Loader(name, module.__file__).get_code(name)
"""


def test_few_modules_are_compiled_at_each_start(made: Conda, prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "uncompiled.py").write_text(UNCOMPILED)
    output = made.run(f"{prefix}/bin/python uncompiled.py", tmp_path)
    # Two modules that contain the prefix, and an empty module.
    assert set(output.split()) <= {"numpy.__config__", "scipy.__config__", "theano.tests"}


def test_programs_run_on_the_environments_interpreter(prefix: Path) -> None:
    foreign = {}
    for file in sorted((prefix / "bin").iterdir()):
        if file.is_symlink() and not file.exists():
            foreign[file.name] = "a link to nothing"
        elif file.is_file():
            with file.open("rb") as stream:
                first = stream.readline()
            if not first.startswith(b"#!"):
                continue
            interpreter = first[2:].split()[0].decode()
            if interpreter not in ("/bin/sh", "/bin/bash") and not interpreter.startswith(
                str(prefix)
            ):
                foreign[file.name] = first.decode().strip()
    assert foreign == {}


@pytest.mark.xfail(strict=True, reason="rattler-build installs the files of tests")
def test_tests_of_packages_are_not_installed(prefix: Path) -> None:
    tests = prefix / "etc" / "conda" / "test-files"
    assert sorted(tests.rglob("*") if tests.exists() else []) == []


def test_a_clone_is_verified(made: Conda, prefix: Path, tmp_path: Path, verify: Verify) -> None:
    made.run(read_page("Copy")[0], tmp_path)
    assert list_installed(made.prefix("copy")) == list_installed(prefix)
    verify(made.prefix("copy"))


def test_the_environment_is_exported_and_created_again(
    made: Conda, prefix: Path, tmp_path: Path, verify: Verify
) -> None:
    _, oldest = read_first_lines(paths.LOCKS / "openblas" / "environment.yml")
    if made.version < oldest:
        pytest.skip(f"such files are for conda {oldest[0]}.{oldest[1]} or newer")
    made.run(read_page("Copy")[1], tmp_path)
    assert list_installed(made.prefix("again")) == list_installed(prefix)
    verify(made.prefix("again"))


def test_a_packed_copy_runs_elsewhere(made: Conda, prefix: Path, tmp_path: Path) -> None:
    packing, _, unpacking = read_page("Copy")[2].partition("\n")
    made.run(packing, tmp_path)
    hidden = prefix.with_name("hidden")
    prefix.rename(hidden)
    try:
        assert " 0 failed" in made.run(unpacking, tmp_path)
    finally:
        hidden.rename(prefix)


def test_a_prefix_with_a_space(made: Conda, tmp_path: Path, verify: Verify) -> None:
    prefix = tmp_path / "my environments" / "theano"
    made.run(f"conda create --yes --prefix '{prefix}' --clone {NAME}", tmp_path)
    verify(prefix)
    assert "pip 2" in made.run(f"'{prefix}/bin/pip' --version", tmp_path)
