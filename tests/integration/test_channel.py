"""Install environments from the channel and a lock file, and check the packages' metadata."""

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
from builder.package import binaries, canonical, solver
from builder.source.sources import hash_file


def read_lock() -> list[tuple[str, str]]:
    """List the packages of openblas' lock file: path in the channel, and SHA-256."""
    lines = (paths.LOCKS / "openblas" / envs.LOCK_NAME).read_text().splitlines()
    entries = [line.removeprefix("CHANNEL/").partition("#sha256:") for line in lines]
    return [(package, digest) for package, _, digest in entries if digest]


@pytest.fixture
def address() -> Iterator[str]:
    """Serve the channel over HTTP; yield its address."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(paths.CHANNEL))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_environment_installs_from_the_lock_file_over_http(
    prefix: Path, address: str, tmp_path: Path
) -> None:
    files = []
    for package, digest in read_lock():
        file = tmp_path / package.rpartition("/")[2]
        urllib.request.urlretrieve(f"{address}/{package}", file)
        assert hash_file(file) == digest
        files.append(str(file))
    environment = tmp_path / "env"
    solver.call("install", files=files, prefix=str(environment), cache=str(tmp_path / "cache"))
    assert (environment / "bin" / "theano-fast").exists()
    assert f"-L{environment}/lib" in (environment / "etc" / "theanorc").read_text()


def test_two_installations_of_a_lock_file_are_equal(prefix: Path, tmp_path: Path) -> None:
    """Installations with different package caches, in the same prefix, have the same files."""
    environment = tmp_path / "env"
    digests = set()
    for cache in ("cache", "another-cache"):
        files = [str(paths.CHANNEL / package) for package, _ in read_lock()]
        solver.call("install", files=files, prefix=str(environment), cache=str(tmp_path / cache))
        digests.add(envs.hash_environment(environment))
        shutil.rmtree(environment)
    assert len(digests) == 1


def test_packages_depend_on_the_glibc_that_their_binaries_need(prefix: Path) -> None:
    glibc_specs = {}
    for name, _ in read_lock():
        package = paths.CHANNEL / name
        depends = canonical.read_metadata(package)["index.json"]["depends"]
        glibc_specs[name] = [spec for spec in depends if spec.startswith("__glibc")]
        required = binaries.make_glibc_specs(canonical.read_requirements(package))
        assert glibc_specs[name] == required, name
    assert len(list(filter(None, glibc_specs.values()))) > 10
