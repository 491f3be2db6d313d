"""Download sources from local HTTP servers that fail in several ways."""

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
    """Serve CONTENT, with the fault that the first part of the path names.

    ``missing`` answers 404, ``round`` redirects without end, ``silent`` does not answer, and
    ``cut`` closes the connection after 10,000 bytes. Other names serve the complete content.
    ``cut`` and the complete content support the header Range.
    """

    def do_GET(self) -> None:
        fault = self.path.split("/")[1]
        if fault == "missing":
            self.send_error(404, "Not here")
        elif fault == "round":
            self.send_response(302)
            self.send_header("Location", f"/round/{self.path}"[:40])
            self.end_headers()
        elif fault == "silent":
            self.server.released.wait(30)  # type: ignore[attr-defined]
        else:
            self._send(10_000 if fault == "cut" else len(CONTENT))

    def _send(self, max_bytes: int) -> None:
        """Send at most ``max_bytes`` of CONTENT, from the offset in the header Range."""
        requested_range = self.headers["Range"]
        offset = int(requested_range.removeprefix("bytes=").rstrip("-")) if requested_range else 0
        self.send_response(206 if requested_range else 200)
        self.send_header("Content-Length", str(len(CONTENT) - offset))
        self.end_headers()
        self.wfile.write(CONTENT[offset : offset + max_bytes])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    """Start a server with Handler; yield its address."""
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
    """A download whose connection closes every 10,000 bytes gets the complete file."""
    downloads.download(f"{address}/cut/x", tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("fault", "reason"), [("missing", "HTTP status 404"), ("round", "HTTP status 302")]
)
def test_an_address_without_a_file_is_a_one_line_error(
    fault: str, reason: str, address: str, tmp_path: Path
) -> None:
    """The error of a missing file, or of an endless redirection, has the address and the status."""
    with pytest.raises(LookupError, match=reason) as failure:
        downloads.download(f"{address}/{fault}/x", tmp_path / "x")
    assert str(failure.value).startswith(f"{address}/{fault}/x")
    assert "\n" not in str(failure.value)


def test_a_silent_server_times_out(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "TIMEOUT", 0.2)
    with pytest.raises(OSError, match=f"{address}/silent/x: timed out"):
        downloads.download(f"{address}/silent/x", tmp_path / "x")


@pytest.fixture
def mirror(sources: Path, tmp_path: Path) -> Iterator[str]:
    """Serve a mirror of Debian that contains only zlib's source; yield its address."""
    [archive] = sources.iterdir()
    pool = tmp_path / "mirror" / "pool" / "main" / "z" / "zlib"
    pool.mkdir(parents=True)
    shutil.copyfile(archive, pool / archive.name)

    def make_handler(*arguments: object) -> http.server.SimpleHTTPRequestHandler:
        return Quiet(*arguments, directory=str(tmp_path / "mirror"))  # type: ignore[arg-type]

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), make_handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serve a directory without log messages."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def without_apt(tmp_path: Path) -> str:
    """Return a PATH with all of the host's programs except apt's, as on other distributions."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for program in Path(folder).iterdir():
            link = directory / program.name
            if not program.name.startswith("apt") and not link.is_symlink():
                link.symlink_to(program)
    return str(directory)


@pytest.mark.thorough
def test_a_host_without_apt_uses_the_mirror_of_a_variable(
    project: Project, mirror: str, without_apt: str
) -> None:
    environ = {debian.MIRROR: mirror, "PATH": without_apt}
    status, output = project.invoke("packages", "--stack=openblas", **environ)
    assert status == 0, output


def test_every_failed_origin_is_reported(project: Project, address: str, without_apt: str) -> None:
    """The error lists the failures of apt, of a missing file, and of a file with a wrong hash."""
    recipe = project.root / "recipes" / "zlib" / "recipe.yaml"
    text = recipe.read_text()
    recipe.write_text(text[: text.index("extra:")] + EXTRA.format(address=address))
    status, output = project.invoke("fetch", "--stack=openblas", PATH=without_apt)
    assert status == errors.SourceUnavailable.exit_code, output
    for reason in ("this host has no apt", "/missing/zlib: HTTP status 404", "wrong SHA-256"):
        assert reason in output
    assert hashlib.sha256(CONTENT).hexdigest() in output
    assert debian.MIRROR in output
    assert project.list_partial_files() == []


EXTRA = """extra:
  upstream:
    zlib_: {address}/missing/zlib
    zlib_1: {address}/whole/zlib
"""
