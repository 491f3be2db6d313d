"""Install each built stack with the commands in the first lines of its files in envs/."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import (
    EXAMPLE,
    Conda,
    list_installed,
    read_first_lines,
    read_lock,
    read_page,
    run_first_lines,
)

from builder.common import paths
from builder.environment import envs


@pytest.fixture(params=[envs.LOCK_NAME, "environment.yml"])
def file(request: pytest.FixtureRequest, stack: str, tmp_path: Path) -> Path:
    """Return a copy of a stack's lock file or of its environment.yml."""
    return Path(shutil.copy(paths.LOCKS / stack / request.param, tmp_path))


def test_the_first_lines_install_the_stack(
    user: Conda, address: str, stack: str, file: Path, verify: Callable[[Path], None]
) -> None:
    """The environment has the lock file's packages and is verified; an older conda fails."""
    commands, oldest = read_first_lines(file)
    script = "\n".join(commands)
    assert script.count(EXAMPLE) == 1
    done = user(script.replace(EXAMPLE, address), file.parent)
    if user.version < oldest:
        assert done.returncode != 0
        return
    assert done.returncode == 0, done.stdout
    prefix = user.get_prefix(f"theano-{stack}")
    assert list_installed(prefix) == set(read_lock(stack))
    verify(prefix)


@pytest.fixture
def foreign_channel(tmp_path: Path) -> str:
    """Write the index of a channel that offers a newer zlib; return the channel's URL."""
    record = {"name": "zlib", "version": "9.9", "build": "0", "build_number": 0, "depends": []}
    file = {**record, "subdir": "linux-64", "sha256": "0" * 64, "md5": "0" * 32, "size": 1}
    for subdir, packages in (("linux-64", {"zlib-9.9-0.conda": file}), ("noarch", {})):
        (tmp_path / "foreign" / subdir).mkdir(parents=True)
        index = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": packages}
        (tmp_path / "foreign" / subdir / "repodata.json").write_text(json.dumps(index))
    return f"file://{tmp_path}/foreign"


def test_a_channel_of_condarc_adds_no_package(
    user: Conda, channel: Path, foreign_channel: str, tmp_path: Path
) -> None:
    """The environment has the lock file's zlib, although the user's channel offers a newer zlib."""
    (user.home / ".condarc").write_text(f"channels: [{foreign_channel}]\n")
    file = shutil.copy(paths.LOCKS / "openblas" / "environment.yml", tmp_path)
    run_first_lines(user, Path(file), f"file://{channel}")
    assert list_installed(user.get_prefix("theano-openblas")) == set(read_lock("openblas"))


def test_an_unreachable_channel_of_condarc_has_no_effect(
    user: Conda, address: str, tmp_path: Path
) -> None:
    (user.home / ".condarc").write_text("channels: [http://127.0.0.1:1/nowhere]\n")
    _, create, verify = read_page("Install")
    user.run(create.replace(EXAMPLE, address), tmp_path)
    assert list_installed(user.get_prefix("theano-openblas")) == set(read_lock("openblas"))
    assert " 0 failed" in user.run(verify, tmp_path)


@pytest.fixture
def wrong_package(tmp_path: Path) -> str:
    """Write a lock file with a wrong hash of zlib to ``tmp_path``; return zlib's file name."""
    text = (paths.LOCKS / "openblas" / envs.LOCK_NAME).read_text()
    name = next(name for name in read_lock("openblas") if name.startswith("zlib-"))
    (tmp_path / envs.LOCK_NAME).write_text(text.replace(read_lock("openblas")[name], "0" * 64))
    return name


def test_over_http_a_wrong_hash_is_refused(
    user: Conda, served: str, wrong_package: str, tmp_path: Path
) -> None:
    commands, _ = read_first_lines(tmp_path / envs.LOCK_NAME)
    done = user("\n".join(commands).replace(EXAMPLE, served), tmp_path)
    assert done.returncode != 0
    assert f"actual sha256: {read_lock('openblas')[wrong_package]}" in done.stdout


def test_with_file_a_command_detects_a_wrong_hash(
    user: Conda, channel: Path, wrong_package: str, tmp_path: Path
) -> None:
    compare = read_page("Install")[0].replace(EXAMPLE.removeprefix("file://"), str(channel))
    differences = user(compare, tmp_path)
    assert differences.returncode != 0
    assert f"{wrong_package}: FAILED" in differences.stdout
    # From a file URL, conda installs the package in spite of the wrong hash. If a future conda
    # refuses the package, change docs/conda.md and the comment in the lock files.
    run_first_lines(user, tmp_path / envs.LOCK_NAME, f"file://{channel}")
    shutil.copy(paths.LOCKS / "openblas" / envs.LOCK_NAME, tmp_path)
    assert user.run(compare, tmp_path) == ""


def test_the_channels_packages_have_the_lock_files_hashes(stack: str, channel: Path) -> None:
    for name, digest in read_lock(stack).items():
        (file,) = channel.glob(f"*/{name}")
        assert hashlib.sha256(file.read_bytes()).hexdigest() == digest, name
