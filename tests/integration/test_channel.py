"""The channel and the lock, as a cluster's users meet them: over HTTP, with the lock's hashes."""

from __future__ import annotations

import functools
import http.server
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder import envs, paths, solver
from builder.sources import sha256


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
    lock = (paths.LOCKS / "openblas" / envs.LOCK_NAME).read_text().replace("CHANNEL", address)
    files = []
    for line in lock.splitlines():
        if not line.startswith(address):
            continue
        url, _, digest = line.partition("#sha256:")
        file = tmp_path / url.rpartition("/")[2]
        urllib.request.urlretrieve(url, file)
        assert sha256(file) == digest
        files.append(str(file))
    environment = tmp_path / "env"
    solver.call("install", files=files, prefix=str(environment), cache=str(tmp_path / "cache"))
    assert (environment / "bin" / "theano-fast").exists()
    assert f"-L{environment}/lib" in (environment / "etc" / "theanorc").read_text()
