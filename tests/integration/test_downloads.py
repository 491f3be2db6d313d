"""Download sources from faulty servers, which run on this machine."""

from __future__ import annotations

import hashlib
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import Project

from builder.common import errors
from builder.source import debian, downloads

CONTENT = bytes(range(256)) * 400


class Handler(http.server.BaseHTTPRequestHandler):
    """Serve CONTENT, with the fault that the path names."""

    def do_GET(self) -> None:
        kind = self.path.split("/")[1]
        if kind == "missing":
            self.send_error(404, "Not here")
        elif kind == "round":
            self.send_response(302)
            self.send_header("Location", f"/round/{self.path}"[:40])
            self.end_headers()
        elif kind == "silent":
            self.server.released.wait(30)  # type: ignore[attr-defined]
        else:
            self._send(cut=10_000 if kind == "cut" else len(CONTENT))

    def _send(self, cut: int) -> None:
        asked = self.headers["Range"]
        offset = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(CONTENT) - offset))
        self.end_headers()
        self.wfile.write(CONTENT[offset : offset + cut])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.released = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.released.set()  # type: ignore[attr-defined]
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_interrupted_download_is_resumed(address: str, tmp_path: Path) -> None:
    downloads.download(f"{address}/cut/x", tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("kind", "reason"), [("missing", "HTTP status 404"), ("round", "HTTP status 302")]
)
def test_a_missing_file_at_an_address_is_a_one_line_error(
    kind: str, reason: str, address: str, tmp_path: Path
) -> None:
    with pytest.raises(LookupError, match=reason) as failure:
        downloads.download(f"{address}/{kind}/x", tmp_path / "x")
    assert str(failure.value).startswith(f"{address}/{kind}/x")
    assert "\n" not in str(failure.value)


def test_a_silent_server_times_out(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "TIMEOUT", 0.2)
    with pytest.raises(OSError, match=f"{address}/silent/x: timed out"):
        downloads.download(f"{address}/silent/x", tmp_path / "x")


@pytest.fixture
def mirror(sources: Path, tmp_path: Path) -> Iterator[str]:
    """Serve a mirror of Debian with the only source that a project of zlib needs."""
    [archive] = sources.iterdir()
    pool = tmp_path / "mirror" / "pool" / "main" / "z" / "zlib"
    pool.mkdir(parents=True)
    shutil.copyfile(archive, pool / archive.name)

    def handler(*arguments: object) -> http.server.SimpleHTTPRequestHandler:
        return Quiet(*arguments, directory=str(tmp_path / "mirror"))  # type: ignore[arg-type]

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def without_apt(tmp_path: Path) -> str:
    """Return a PATH of this host's programs without apt, as on other distributions."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for program in Path(folder).iterdir():
            link = directory / program.name
            if not program.name.startswith("apt") and not link.is_symlink():
                link.symlink_to(program)
    return str(directory)


@pytest.mark.thorough
def test_a_host_without_apt_uses_the_named_mirror(
    project: Project, mirror: str, without_apt: str
) -> None:
    environ = {debian.MIRROR: mirror, "PATH": without_apt}
    status, output = project.invoke("packages", "--stack=openblas", **environ)
    assert status == 0, output


def test_every_failed_origin_is_reported(project: Project, address: str, without_apt: str) -> None:
    recipe = project.root / "recipes" / "zlib" / "recipe.yaml"
    text = recipe.read_text()
    recipe.write_text(text[: text.index("extra:")] + EXTRA.format(address=address))
    status, output = project.invoke("fetch", "--stack=openblas", PATH=without_apt)
    assert status == errors.SourceUnavailable.exit_code, output
    for reason in ("this host has no apt", "/missing/zlib: HTTP status 404", "wrong SHA-256"):
        assert reason in output
    assert hashlib.sha256(CONTENT).hexdigest() in output
    assert debian.MIRROR in output
    assert project.half_written() == []


EXTRA = """extra:
  upstream:
    zlib_: {address}/missing/zlib
    zlib_1: {address}/whole/zlib
"""
