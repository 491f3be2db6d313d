"""Start a Slurm cluster of four nodes in namespaces of one host."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builder.common import paths
from builder.common.processes import clean_environ
from builder.environment import envs

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "ip", "unshare", "nsenter", "setpriv")
NAMESPACES = ("mount", "pid", "net", "uts", "ipc")
FILES = Path(__file__).parent

Result = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def prefix() -> Path:
    """Return the prefix of the openblas environment."""
    envs.require_installed("openblas")
    return paths.ENVIRONMENTS / "openblas"


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Start the cluster with up.sh; yield the command prefix that runs a command on node head."""
    if os.geteuid() != 0:
        pytest.skip("the daemons of the cluster need root")
    if missing := [program for program in PROGRAMS if not shutil.which(program)]:
        pytest.skip(f"not on PATH: {', '.join(missing)} (apt-get install slurm-wlm munge)")
    # All nodes must see this directory. Do not use /tmp, because each node has its own /tmp.
    directory = paths.BUILD / "cluster"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for name in ("slurm.conf", "hosts"):
        shutil.copy(FILES / name, directory)
    namespaces = [f"--{name}" for name in NAMESPACES]
    unshare = ["unshare", *namespaces, "--fork", "--kill-child", "--mount-proc"]
    with subprocess.Popen(
        [*unshare, "--propagation=private", "bash", FILES / "up.sh", directory],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout
        output = ""
        while line := process.stdout.readline():
            output += line
            if line == "up\n":
                break
        else:
            pytest.skip(f"this host cannot start a cluster: {output}")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        enter = ["nsenter", "--target", children.split()[0], *namespaces, f"--wd={directory}"]
        for _ in range(60):
            command = [*enter, "sinfo", "-h", "-o", "%T %D"]
            nodes = subprocess.run(command, capture_output=True, text=True, check=False)
            if nodes.stdout == "idle 4\n":
                break
            time.sleep(0.5)
        yield enter
        # Close the standard input of up.sh: this ends the script and the cluster.
        process.communicate("", timeout=60)


@pytest.fixture
def shared() -> Iterator[Path]:
    """Return a new directory that all nodes see, the home directory of the jobs."""
    directory = paths.BUILD / "cluster" / "shared"
    directory.mkdir()
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def run(cluster: list[str], shared: Path, prefix: Path) -> Callable[..., Result]:
    """Return a function that runs a command on the cluster's head.

    The environment's programs are first on PATH. Keyword arguments add variables.
    """

    def start(*argv: str | Path, **env: str) -> Result:
        environ = {**clean_environ(), "HOME": str(shared), **env}
        environ["PATH"] = f"{prefix}/bin:{environ['PATH']}"
        return subprocess.run(
            [*cluster, *map(str, argv)],
            env=environ,
            timeout=550,
            capture_output=True,
            text=True,
            check=False,
        )

    return start
