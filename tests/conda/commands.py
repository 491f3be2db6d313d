"""Read and run the commands in docs/conda.md and in the first lines of a stack's files in envs/."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from builder.common import paths
from builder.common.processes import clean_environ
from builder.environment import envs

Result = subprocess.CompletedProcess[str]

# The channel's address in the commands of docs/conda.md and of a stack's files.
EXAMPLE = "file:///srv/channel"
# With these variables, conda reaches only servers of this host: the proxy does not exist.
NO_NETWORK = {
    **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://[::1]:1"),
    **dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1"),
    "CONDA_REMOTE_MAX_RETRIES": "0",
}


@dataclass(frozen=True)
class Conda:
    """An installation of conda, and a home directory with a package cache and environments.

    ``bin`` is the directory that contains the program conda.
    """

    bin: Path
    home: Path

    @property
    def version(self) -> tuple[int, ...]:
        """Return the major and the minor version of conda."""
        version = self("conda --version", self.home).stdout
        return tuple(map(int, version.split()[-1].split(".")[:2]))

    def get_prefix(self, name: str) -> Path:
        """Return the prefix of the environment ``name``."""
        return self.home / "envs" / name

    def __call__(self, script: str, cwd: Path, **env: str) -> Result:
        """Run shell commands with this conda first on PATH; return the process.

        ``cwd`` is the working directory. Keyword arguments add variables.
        """
        inherited = {key: value for key, value in clean_environ().items() if "CONDA" not in key}
        environ = {
            **inherited,
            **NO_NETWORK,
            "PATH": f"{self.bin}{os.pathsep}{inherited['PATH']}",
            "HOME": str(self.home),
            "CONDA_ENVS_DIRS": str(self.home / "envs"),
            "CONDA_PKGS_DIRS": str(self.home / "pkgs"),
            "CONDA_BLD_PATH": str(self.home / "bld"),
        }
        return subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            env={**environ, **env},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def run(self, script: str, cwd: Path, **env: str) -> str:
        """Run shell commands that must succeed; return their output."""
        done = self(script, cwd, **env)
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        return done.stdout

    def change_home(self, home: Path) -> Conda:
        """Return the same installation with a different home directory."""
        home.mkdir(parents=True, exist_ok=True)
        return replace(self, home=home)


def read_page(heading: str) -> list[str]:
    """Return the code blocks in a section of docs/conda.md; a block contains shell commands."""
    text = (paths.ROOT / "docs" / "conda.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert blocks, f"docs/conda.md has no commands below {heading!r}"
    return [block.strip() for block in blocks]


def read_first_lines(file: Path) -> tuple[list[str], tuple[int, ...]]:
    """Return the commands in the comment at the start of a stack's file, and a version.

    The version is the oldest conda that supports the commands, such as (4, 14).
    """
    lines = file.read_text(encoding="utf-8").splitlines()
    commands = [line.removeprefix("#   ") for line in lines if line.startswith("#   ")]
    (oldest,) = re.findall(r"conda (\d+)\.(\d+) or newer", "\n".join(lines))
    return commands, tuple(map(int, oldest))


def run_first_lines(user: Conda, file: Path, address: str) -> None:
    """Run the commands in the comment at the start of a stack's file, with a channel's address.

    Skip the test if the user's conda is too old for the commands.
    """
    commands, oldest = read_first_lines(file)
    if user.version < oldest:
        pytest.skip(f"{file.name} is for conda {oldest[0]}.{oldest[1]} or newer")
    user.run("\n".join(commands).replace(EXAMPLE, address), file.parent)


def read_lock(stack: str) -> dict[str, str]:
    """Map the file name of each package in a stack's lock file to its SHA-256."""
    text = (paths.LOCKS / stack / envs.LOCK_NAME).read_text(encoding="utf-8")
    return dict(re.findall(r"^CHANNEL/\S+/(\S+)#sha256:(\w{64})$", text, re.MULTILINE))


def list_installed(prefix: Path) -> set[str]:
    """Return the file names of the packages in a conda environment."""
    return {f"{record.stem}.conda" for record in (prefix / "conda-meta").glob("*.json")}
