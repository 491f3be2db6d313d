"""Download wheels and sdists by their exact file names, with the user's pip configuration.

``python -m builder.source.pypi download FILE DESTINATION`` writes a file. ``list PROJECT...``
prints the files of projects as JSON. The module runs as a separate process, because pip's modules
keep process-wide state (logging, session). It uses internal classes of pip (finder, session), so
requirements.txt pins pip's release. ``pip download`` is not suitable: it runs the build of an sdist
to get its metadata, and it refuses wheels for other versions of Python.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from pip._internal.commands import create_command
from pip._internal.index.collector import parse_links

from builder.source import downloads


def parse_project(file: str) -> str:
    """Return the normalized name of a project (PEP 503) from a file name (PEP 427, PEP 625).

    Args:
        file: the name of a wheel or sdist.
    """
    name = file.partition("-")[0] if file.endswith(".whl") else file.rpartition("-")[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def download(file: str, destination: Path) -> None:
    """Download a wheel or sdist.

    Args:
        file: the file's exact name.
        destination: the path to write.

    Raises:
        LookupError: no configured index or --find-links directory has the file.
        OSError: the download failed; see :func:`builder.source.downloads.write_with_retries`.
    """
    with _open_pip() as (session, collector):
        for link in _find_links(collector, parse_project(file)):
            if link.filename == file:
                _write(session, link.url_without_fragment, destination)
                return
    raise LookupError(f"no configured package index has {file}")


def list_files(projects: Iterable[str]) -> dict[str, str | None]:
    """Return the upload dates of the files of projects, by file name.

    A date is in ISO format, or None if the index does not send it. Omit yanked files.

    Raises:
        LookupError: no configured index has one of the projects, or no index answers.
    """
    files: dict[str, str | None] = {}
    with _open_pip() as (_, collector):
        for name in projects:
            links = [link for link in _find_links(collector, name) if not link.is_yanked]
            if not links:
                raise LookupError(f"no configured package index has {name}, or no index answers")
            for link in links:
                # Only indexes that answer in JSON send the upload time (PEP 700).
                date = link.upload_time and str(link.upload_time.date())
                files[link.filename] = date or files.get(link.filename)
    return files


@contextmanager
def _open_pip() -> Iterator[tuple[Any, Any]]:
    """Open pip's session and link collector."""
    # The type is Any, because pip's internal types may change.
    command: Any = create_command("download")
    options, _ = command.parse_args(["--quiet", "--quiet", "a-project"])
    with command.main_context():
        session = command.get_default_session(options)
        yield session, command._build_package_finder(options, session)._link_collector


def _find_links(collector: Any, name: str) -> Iterator[Any]:
    """Find the links of a project in the configured indexes and --find-links directories."""

    def parse_page(page: Any) -> list[Any]:
        content = collector.fetch_response(page)
        return list(parse_links(content)) if content else []

    sources = collector.collect_sources(name, candidates_from_page=parse_page)
    for source in (*sources.index_urls, *sources.find_links):
        yield from source.page_candidates() if source else ()


def _write(session: Any, url: str, destination: Path) -> None:
    @contextmanager
    def request(offset: int) -> Iterator[downloads.Answer]:
        # With another encoding, requests would decompress the body, which changes its hash.
        headers = {"Accept-Encoding": "identity"}
        if offset:
            headers["Range"] = f"bytes={offset}-"
        with session.get(url, headers=headers, stream=True) as response:
            if HTTPStatus.BAD_REQUEST <= response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise LookupError(f"{url}: HTTP status {response.status_code}")
            response.raise_for_status()
            size = response.headers.get("Content-Length")
            yield downloads.Answer(
                resumed=response.status_code == HTTPStatus.PARTIAL_CONTENT,
                size=int(size) if size else None,
                blocks=response.iter_content(downloads.BLOCK),
            )

    downloads.write_with_retries(request, destination)


if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    try:
        if verb == "download":
            download(arguments[0], Path(arguments[1]))
        else:
            print(json.dumps(list_files(arguments)))
    except (LookupError, OSError) as error:
        sys.exit(str(error))
