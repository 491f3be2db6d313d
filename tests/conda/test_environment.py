"""Use, copy and inspect an environment that conda installed from openblas' lock file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Conda, list_installed, read_first_lines, read_lock, read_page, run_first_lines

from builder.common import paths
from builder.environment import envs

Verify = Callable[[Path], None]

NAME = "theano-openblas"


@pytest.fixture(scope="module")
def installed(conda: Conda, served: str) -> Conda:
    """Install openblas from the lock file over HTTP; return conda with the environment's home."""
    user = conda.change_home(conda.home / "installed")
    file = shutil.copy(paths.LOCKS / "openblas" / envs.LOCK_NAME, user.home)
    run_first_lines(user, Path(file), served)
    return user


@pytest.fixture(scope="module")
def prefix(installed: Conda) -> Path:
    """Return the prefix of the installed environment."""
    return installed.get_prefix(NAME)


def test_conda_lists_the_lock_files_packages(installed: Conda, served: str, tmp_path: Path) -> None:
    output = installed.run(f"conda list --name {NAME} --explicit --sha256", tmp_path)
    lines = {line.rpartition("/")[2] for line in output.splitlines() if line.startswith(served)}
    assert lines == {f"{file}#{sha256}" for file, sha256 in read_lock("openblas").items()}


def test_the_environment_can_be_activated(installed: Conda, tmp_path: Path) -> None:
    script = f"""
        eval "$(conda shell.posix hook)"
        conda activate {NAME}
        python -c "import sys, theano; print(sys.prefix, theano.config.blas.ldflags)"
        conda deactivate
    """
    prefix = installed.get_prefix(NAME)
    assert f'{prefix} "-L{prefix}/lib" -lopenblas\n' in installed.run(script, tmp_path)


def test_pip_finds_all_requirements(installed: Conda, prefix: Path, tmp_path: Path) -> None:
    listing = installed.run(f"{prefix}/bin/python -m pip list --format=json", tmp_path)
    names = {row["name"].lower() for row in json.loads(listing.splitlines()[-1])}
    assert {"numpy", "scipy", "theano", "theano-fast"} <= names
    assert "No broken requirements" in installed.run(f"{prefix}/bin/pip check", tmp_path)


# Print the imported modules without a valid .pyc file. Python compiles these modules at each start
# if it cannot write to the environment.
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


def test_few_modules_are_compiled_at_each_start(
    installed: Conda, prefix: Path, tmp_path: Path
) -> None:
    (tmp_path / "uncompiled.py").write_text(UNCOMPILED)
    output = installed.run(f"{prefix}/bin/python uncompiled.py", tmp_path)
    # Two of these modules contain the prefix, which the installation changes; the third is empty.
    assert set(output.split()) <= {"numpy.__config__", "scipy.__config__", "theano.tests"}


def test_programs_run_on_the_environments_interpreter(prefix: Path) -> None:
    """Scripts in bin/ start with the environment's interpreter or a shell; no symlink is broken."""
    violations = {}
    for file in sorted((prefix / "bin").iterdir()):
        if file.is_symlink() and not file.exists():
            violations[file.name] = "a broken symlink"
        elif file.is_file():
            with file.open("rb") as stream:
                first_line = stream.readline()
            if not first_line.startswith(b"#!"):
                continue
            interpreter = first_line[2:].split()[0].decode()
            if interpreter not in ("/bin/sh", "/bin/bash") and not interpreter.startswith(
                str(prefix)
            ):
                violations[file.name] = first_line.decode().strip()
    assert violations == {}


@pytest.mark.xfail(strict=True, reason="rattler-build installs the files of tests")
def test_tests_of_packages_are_not_installed(prefix: Path) -> None:
    tests = prefix / "etc" / "conda" / "test-files"
    assert sorted(tests.rglob("*") if tests.exists() else []) == []


def test_a_clone_is_verified(
    installed: Conda, prefix: Path, tmp_path: Path, verify: Verify
) -> None:
    installed.run(read_page("Copy")[0], tmp_path)
    assert list_installed(installed.get_prefix("copy")) == list_installed(prefix)
    verify(installed.get_prefix("copy"))


def test_the_environment_is_exported_and_created_again(
    installed: Conda, prefix: Path, tmp_path: Path, verify: Verify
) -> None:
    _, oldest = read_first_lines(paths.LOCKS / "openblas" / "environment.yml")
    if installed.version < oldest:
        pytest.skip(f"environment.yml is for conda {oldest[0]}.{oldest[1]} or newer")
    installed.run(read_page("Copy")[1], tmp_path)
    assert list_installed(installed.get_prefix("again")) == list_installed(prefix)
    verify(installed.get_prefix("again"))


def test_a_packed_copy_runs_elsewhere(installed: Conda, prefix: Path, tmp_path: Path) -> None:
    pack_command, _, unpack_commands = read_page("Copy")[2].partition("\n")
    installed.run(pack_command, tmp_path)
    # Hide the original, so that the copy cannot use its files.
    hidden = prefix.with_name("hidden")
    prefix.rename(hidden)
    try:
        assert " 0 failed" in installed.run(unpack_commands, tmp_path)
    finally:
        hidden.rename(prefix)


def test_a_prefix_may_contain_a_space(installed: Conda, tmp_path: Path, verify: Verify) -> None:
    prefix = tmp_path / "my environments" / "theano"
    installed.run(f"conda create --yes --prefix '{prefix}' --clone {NAME}", tmp_path)
    verify(prefix)
    assert "pip 2" in installed.run(f"'{prefix}/bin/pip' --version", tmp_path)
