"""Wheels and sdists by their exact file names, as the user's pip is configured.

As a program, ``download FILE DESTINATION`` writes one; ``list PROJECT...`` prints, as JSON, which
files the indexes have. A program of its own because pip's parts keep process-wide state (logging,
session). ``pip download`` cannot do this: for an sdist it runs the project's build to learn its
metadata, and for a wheel it refuses other Pythons'. So pip's own finder and session are used, in
the exact release that requirements.txt pins.
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


def project(file: str) -> str:
    """The normalised project name in a wheel's or sdist's file name (PEP 503, 427, 625)."""
    name = file.partition("-")[0] if file.endswith(".whl") else file.rpartition("-")[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def download(file: str, destination: Path) -> None:
    """Write ``file`` to ``destination``.

    Raises:
        LookupError: no configured index or --find-links directory has it.
    """
    with _pip() as (session, collector):
        for link in _links(collector, project(file)):
            if link.filename == file:
                _write(session, link.url_without_fragment, destination)
                return
    raise LookupError(f"no configured package index has {file}")


def listed(projects: Iterable[str]) -> dict[str, str | None]:
    """The files of projects, without withdrawn ones, and the day each was uploaded, if known.

    Raises:
        LookupError: no configured index has one of the projects, or none answers.
    """
    files: dict[str, str | None] = {}
    with _pip() as (_, collector):
        for name in projects:
            links = [link for link in _links(collector, name) if not link.is_yanked]
            if not links:
                raise LookupError(f"no configured package index has {name}, or none answers")
            for link in links:
                # Only indexes that answer in JSON tell it (PEP 700).
                day = link.upload_time and str(link.upload_time.date())
                files[link.filename] = day or files.get(link.filename)
    return files


@contextmanager
def _pip() -> Iterator[tuple[Any, Any]]:
    """pip's session and link collector."""
    # Any: pip types its own commands for its own use only.
    command: Any = create_command("download")
    options, _ = command.parse_args(["--quiet", "--quiet", "a-project"])
    with command.main_context():
        session = command.get_default_session(options)
        yield session, command._build_package_finder(options, session)._link_collector


def _links(collector: Any, name: str) -> Iterator[Any]:
    """All that the configured indexes and --find-links directories have of a project."""

    def links(page: Any) -> list[Any]:
        content = collector.fetch_response(page)
        return list(parse_links(content)) if content else []

    found = collector.collect_sources(name, candidates_from_page=links)
    for source in (*found.index_urls, *found.find_links):
        yield from source.page_candidates() if source else ()


def _write(session: Any, url: str, destination: Path) -> None:
    @contextmanager
    def ask(offset: int) -> Iterator[downloads.Answer]:
        # identity: a transparently decompressed body would have another hash.
        headers = {"Accept-Encoding": "identity"}
        if offset:
            headers["Range"] = f"bytes={offset}-"
        with session.get(url, headers=headers, stream=True) as response:
            if HTTPStatus.BAD_REQUEST <= response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                raise LookupError(f"{url}: HTTP status {response.status_code}")
            response.raise_for_status()
            size = response.headers.get("Content-Length")
            yield downloads.Answer(
                continued=response.status_code == HTTPStatus.PARTIAL_CONTENT,
                size=int(size) if size else None,
                blocks=response.iter_content(downloads.BLOCK),
            )

    downloads.write(ask, destination)


if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    try:
        if verb == "download":
            download(arguments[0], Path(arguments[1]))
        else:
            print(json.dumps(listed(arguments)))
    except (LookupError, OSError) as error:
        sys.exit(str(error))
