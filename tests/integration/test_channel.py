"""The channel and the lock, as a cluster's users meet them: over HTTP, with the lock's hashes."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.common import paths
from builder.environment import envs
from builder.package import canonical, solver
from builder.source import elf
from builder.source.sources import sha256


def locked() -> list[tuple[str, str]]:
    """Each package's place in the channel and SHA-256, by openblas' explicit lock."""
    lines = (paths.LOCKS / "openblas" / envs.LOCK_NAME).read_text().splitlines()
    found = [line.removeprefix("CHANNEL/").partition("#sha256:") for line in lines]
    return [(package, digest) for package, _, digest in found if digest]


@pytest.fixture
def address() -> Iterator[str]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(paths.CHANNEL))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_environment_installs_from_the_lock_over_http(
    prefix: Path, address: str, tmp_path: Path
) -> None:
    files = []
    for package, digest in locked():
        file = tmp_path / package.rpartition("/")[2]
        urllib.request.urlretrieve(f"{address}/{package}", file)
        assert sha256(file) == digest
        files.append(str(file))
    environment = tmp_path / "env"
    solver.call("install", files=files, prefix=str(environment), cache=str(tmp_path / "cache"))
    assert (environment / "bin" / "theano-fast").exists()
    assert f"-L{environment}/lib" in (environment / "etc" / "theanorc").read_text()


def test_one_lock_gives_one_tree(prefix: Path, tmp_path: Path) -> None:
    environment = tmp_path / "env"
    trees = set()
    for cache in ("cache", "another-cache"):
        files = [str(paths.CHANNEL / package) for package, _ in locked()]
        solver.call("install", files=files, prefix=str(environment), cache=str(tmp_path / cache))
        trees.add(envs.tree(environment))
        shutil.rmtree(environment)
    assert len(trees) == 1


def test_no_package_makes_stacks_executable_or_its_code_writable(prefix: Path) -> None:
    """Every one in the channel but AMD's own library: those of all stacks that were built."""
    demanding, seen = {}, 0
    for package in sorted(paths.CHANNEL.glob("*/*.conda")):
        for member, content in canonical.members(package):
            # An object file has no such headers: the linker writes them.
            relocatable = content[16:18] == b"\x01\x00"
            if elf.is_x86_64(content) and not relocatable and "-aocl_" not in package.name:
                seen += 1
                if any(elf.demands(content)):
                    demanding[f"{package.name}: {member.name}"] = elf.demands(content)
    assert seen > 100
    assert demanding == {}
