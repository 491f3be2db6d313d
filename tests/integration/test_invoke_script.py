"""Run the script ./invoke in a copy of this project, on hosts that lack its requirements."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import Project, require

from builder.common import paths

LOG = Path("build", "logs", "invoke.log")
PARTS = ("builder", "invoke", "requirements.txt", "tasks.py")


def copy_checkout(directory: Path) -> Path:
    """Copy the files that ./invoke needs, without .venv, to ``directory``; return ``directory``."""
    directory.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        origin = paths.ROOT / part
        if origin.is_dir():
            shutil.copytree(origin, directory / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, directory)
    return directory


def run_invoke(
    checkout: Path, *arguments: str, wrap: tuple[str, ...] = (), **env: str
) -> tuple[int, str]:
    """Run ./invoke after the command prefix ``wrap``; return its exit status and its output."""
    done = subprocess.run(
        [*wrap, "sh", str(checkout / "invoke"), *arguments],
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the checkout whose path contains a space."""
    return copy_checkout(tmp_path / "a checkout")


@pytest.fixture
def mount_tmpfs(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Return a function that mounts a tmpfs with some options and returns its mount point."""
    require("mount", root=True)
    mount_points: list[Path] = []

    def mount(options: str) -> Path:
        mount_point = tmp_path / f"mounted-{len(mount_points)}"
        mount_point.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", mount_point], check=True)
        mount_points.append(mount_point)
        return mount_point

    yield mount
    for mount_point in mount_points:
        subprocess.run(["umount", mount_point], check=True)


def test_an_old_python_is_a_one_line_error(checkout: Path, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "python3"
    old.parent.mkdir()
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.9.2" && exit\nexit 1\n')
    old.chmod(0o755)
    status, output = run_invoke(checkout, "stacks", PATH=f"{old.parent}:{os.environ['PATH']}")
    assert (status, output.count("\n")) == (6, 1), output
    assert "python3 is Python 3.9.2; put Python 3.10 or newer first on PATH" in output


def test_a_missing_network_is_a_one_line_error_with_a_log(
    checkout: Path, no_network: tuple[str, ...]
) -> None:
    status, output = run_invoke(checkout, "stacks", wrap=no_network, PIP_RETRIES="0")
    # The step that fails depends on the host: a bare Debian lacks ensurepip, which installs pip.
    code, message = (6, "has no pip, and apt-get cannot fetch it; check the network, or install")
    if importlib.util.find_spec("ensurepip"):
        code, message = (
            4,
            "cannot install the tools; check the network and pip's configuration",
        )
    assert (status, output.count("\n")) == (code, 2), output
    assert message in output
    assert f"; see {checkout / LOG}\n" in output
    assert re.search("^E(RROR)?: ", (checkout / LOG).read_text(), re.MULTILINE)


@pytest.mark.parametrize("has_log", [False, True])
def test_a_checkout_of_another_user_is_a_one_line_error(checkout: Path, has_log: bool) -> None:
    """If a user may not write to the checkout, the error advises to copy the checkout."""
    require("setpriv", root=True)
    if has_log:
        (checkout / LOG).parent.mkdir(parents=True)
        (checkout / LOG).touch()
    for directory in (checkout, *checkout.parents[:3]):
        directory.chmod(0o755)
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    # Use the system's interpreter, which every user may run.
    status, output = run_invoke(checkout, "stacks", wrap=nobody, PATH="/usr/bin:/bin")
    assert (status, output.count("\n")) == (16, 1), output
    assert f"Permission denied; copy {checkout} to a directory of your own" in output


@pytest.mark.thorough
def test_a_full_disk_is_a_one_line_error_and_the_next_run_continues(
    mount_tmpfs: Callable[[str], Path],
) -> None:
    mount_point = mount_tmpfs("size=20m")
    checkout = copy_checkout(mount_point / "checkout")
    status, output = run_invoke(checkout, "stacks")
    assert (status, output.count("\n")) == (11, 2), output
    assert "no space left on device; free some space and run again" in output
    with contextlib.suppress(OSError), (mount_point / "rest").open("wb", buffering=0) as stream:
        while stream.write(bytes(4096)):
            pass
    shutil.rmtree(checkout / "build")
    # The error is the only line, or it follows the line that announces the installation.
    status, output = run_invoke(checkout, "stacks")
    assert (status, output.count("\n")) in ((11, 1), (11, 2)), output
    subprocess.run(["mount", "-o", "remount,size=1g", mount_point], check=True)
    status, output = run_invoke(checkout, "stacks")
    assert status == 0, output


def test_a_python_without_pip_fetches_debians_pip(checkout: Path, tmp_path: Path) -> None:
    """./invoke calls `apt-get download`, which needs no root; a failure is a one-line error.

    The programs python3 and apt-get on PATH are fakes: python3 lacks ensurepip, and `apt-get
    download` fails.
    """
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in {
        "python3": f"""case "$*" in *ensurepip*) exit 1 ;; esac; exec {sys.executable} "$@" """,
        "apt-get": 'echo "noise of apt-get $*"; case "$*" in *download*) exit 100 ;; esac',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    status, output = run_invoke(
        checkout, "stacks", PATH=f"{programs}{os.pathsep}{os.environ['PATH']}"
    )
    assert (status, output.count("\n")) == (6, 2), output
    assert "cannot fetch it; check the network, or install python3-venv; see" in output
    calls = re.findall("noise of (.*)", (checkout / LOG).read_text())
    assert [call.split()[-1] for call in calls] == ["update", "python3-pip-whl"]


def test_a_noexec_file_system_is_a_one_line_error(
    mount_tmpfs: Callable[[str], Path],
) -> None:
    checkout = copy_checkout(mount_tmpfs("noexec"))
    status, output = run_invoke(checkout, "stacks")
    assert (status, output.count("\n")) == (16, 2), output
    assert "runs no programs (noexec)" in output


@pytest.mark.thorough
def test_the_next_run_completes_a_killed_installation(checkout: Path) -> None:
    """If ./invoke is killed while pip runs, the next run completes .venv."""
    process = subprocess.Popen(
        ["sh", str(checkout / "invoke"), "stacks"], start_new_session=True, stdout=subprocess.PIPE
    )
    while not (checkout / ".venv" / "bin" / "pip").exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    (checkout / "builder" / "stack" / "stacks.toml").touch()
    status, output = run_invoke(checkout, "stacks")
    assert status == 0, output
    assert "openblas-amdlibm" in output
    # The third run installs nothing.
    status, output = run_invoke(checkout, "stacks")
    assert (status, "installing" in output) == (0, False), output


def test_a_cache_on_a_read_only_file_system_is_reported(
    project: Project, mount_tmpfs: Callable[[str], Path]
) -> None:
    mount_point = mount_tmpfs("ro")
    done = subprocess.run(
        [sys.executable, "tasks.py", "packages", "--stack=openblas"],
        cwd=project.root,
        env={**os.environ, "THEANO_FAST_CACHE": str(mount_point / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 16, done.stdout + done.stderr
    assert "THEANO_FAST_CACHE" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("version", ["2.0.0", "2.2.1", "3.0.3"])
def test_the_hosts_invoke_runs_the_tasks(version: str, checkout: Path, tmp_path: Path) -> None:
    """The host's Invoke lists the tasks without .venv, and runs a task in .venv.

    The working directory is a subdirectory of the checkout.
    """
    host = tmp_path / "host"
    # Install with the builder's pip: a bare Debian's Python cannot create an environment with pip.
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", host], check=True)
    pip = [sys.executable, "-m", "pip", "--python", host / "bin" / "python"]
    subprocess.run([*pip, "install", "--quiet", f"invoke=={version}"], check=True)

    def invoke(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [host / "bin" / "python", "-m", "invoke", *arguments],
            cwd=checkout / "builder",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    status, output = invoke("--list")
    assert (status, "conformance" in output) == (0, True), output
    status, output = invoke("build", "--help")
    assert (status, "--amdlibm-archive" in output) == (0, True), output
    assert not (checkout / ".venv").exists()
    (checkout / ".venv").symlink_to(paths.VENV)
    status, output = invoke("stacks")
    assert (status, "mkl-amdlibm" in output) == (0, True), output
    status, output = invoke("verify", "--stack=nothing")
    assert (status, "unknown stack 'nothing'" in output) == (2, True), output
