"""Helpers of the integration tests: copies of the project, Docker daemons, and skips."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from python_on_whales import DockerClient

from builder.common import paths

Result = subprocess.CompletedProcess[str]


def require(*programs: str, root: bool = False) -> None:
    """Skip the test if a program is not on PATH, or if ``root`` is set and the user is not root."""
    if root and os.geteuid() != 0:
        pytest.skip(f"{' and '.join(programs)} needs root")
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on PATH")


def find_free_port() -> int:
    """Return a free TCP port of 127.0.0.1.

    The tests use this address, because bare root file systems cannot resolve ``localhost``.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def find_compiled_modules(trace: str) -> list[str]:
    """Return the modules that a process compiled because they had no bytecode, or stale bytecode.

    Args:
        trace: the standard error of ``python -v``.
    """
    assert "# code object from '" in trace
    # Quotes enclose only the paths of bytecode.
    return re.findall(r"^# code object from ([^'].*)$", trace, re.MULTILINE)


@contextmanager
def start_daemon(directory: Path) -> Iterator[DockerClient]:
    """Start a Docker daemon that keeps all its files below ``directory``; yield its client."""
    require("dockerd", root=True)
    host = f"unix://{directory}/socket"
    log = (directory / "log").open("wb")
    command = ["dockerd", "--iptables=false", "--bridge=none", f"--host={host}"]
    command += [f"--data-root={directory}/data", f"--exec-root={directory}/exec"]
    process = subprocess.Popen([*command, f"--pidfile={directory}/pid"], stdout=log, stderr=log)
    try:
        for _ in range(300):
            if (directory / "socket").exists():
                break
            assert process.poll() is None, (directory / "log").read_text()
            time.sleep(0.1)
        else:
            pytest.fail(f"dockerd opened no socket: {(directory / 'log').read_text()}")
        yield DockerClient(host=host)
    finally:
        process.terminate()
        process.wait(timeout=60)
        # The daemon leaves the network namespace of its containers mounted.
        subprocess.run(["umount", directory / "exec" / "netns" / "default"], check=False)


class Project:
    """A partial copy of this project, in which Invoke tasks can run.

    ``parts`` are files and directories, relative to the project's root. Tasks use ``cache`` as the
    cache of sources and packages.
    """

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
        """Start an Invoke task in the copy.

        ``wrap`` is a command prefix, such as ``unshare --net``. Keyword arguments add variables.
        """
        return subprocess.Popen(
            [*wrap, sys.executable, "tasks.py", *arguments],
            cwd=self.root,
            env={**os.environ, "THEANO_FAST_CACHE": str(self.cache), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # If a shell runs pytest in the background, pytest and its children ignore SIGINT.
            # Restore the default action, so that a test can interrupt the task.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )

    def invoke(self, *arguments: str, wrap: tuple[str, ...] = (), **env: str) -> tuple[int, str]:
        """Run an Invoke task in the copy; return its exit status and its merged output."""
        process = self.start(*arguments, wrap=wrap, **env)
        output, _ = process.communicate(timeout=300)
        return process.returncode, output

    def invoke_on_terminal(
        self, monkeypatch: pytest.MonkeyPatch, *arguments: str, **env: str
    ) -> tuple[int, str]:
        """Run an Invoke task in the copy on a terminal; return its wait status and its output."""
        if not Path("/dev/ptmx").exists():
            pytest.skip("no terminal can be opened here")
        for name, value in {"TERM": "xterm", "THEANO_FAST_CACHE": str(self.cache), **env}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(self.root)
        output = bytearray()

        def read(descriptor: int) -> bytes:
            output.extend(chunk := os.read(descriptor, 4096))
            return chunk

        status = pty.spawn([sys.executable, "tasks.py", *arguments], read, lambda _: b"")
        return status, output.decode()

    def list_partial_files(self) -> list[Path]:
        """List sources with a temporary name, and package cache entries without packages.json."""
        partial_files = list((self.cache / "sources").rglob(".part-*"))
        packages = self.cache / "packages"
        if packages.exists():
            partial_files += [
                entry
                for entry in packages.iterdir()
                if not entry.name.startswith(".") and not (entry / "packages.json").exists()
            ]
        return partial_files
