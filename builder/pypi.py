"""Download one wheel or sdist by its exact file name, as the user's pip is configured.

``python -m builder.pypi FILE DESTINATION``; a program of its own because pip's
parts keep process-wide state (logging, session). ``pip download`` cannot do
this: for an sdist it runs the project's build to learn its metadata, and for a
wheel it refuses other Pythons'. So pip's own finder and session are used, in
the exact release that requirements.txt pins.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from pip._internal.commands import create_command
from pip._internal.index.collector import parse_links


def project(file: str) -> str:
    """The normalised project name in a wheel's or sdist's file name (PEP 503, 427, 625)."""
    name = file.partition("-")[0] if file.endswith(".whl") else file.rpartition("-")[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def download(file: str, destination: Path) -> None:
    """Write ``file`` to ``destination``.

    Raises:
        LookupError: no configured index or --find-links directory has it.
    """
    # Any: pip types its own commands for its own use only.
    command: Any = create_command("download")
    options, _ = command.parse_args(["--quiet", "--quiet", project(file)])
    with command.main_context():
        session = command.get_default_session(options)
        collector = command._build_package_finder(options, session)._link_collector

        def links(page: Any) -> list[Any]:
            content = collector.fetch_response(page)
            return list(parse_links(content)) if content else []

        found = collector.collect_sources(project(file), candidates_from_page=links)
        for source in (*found.index_urls, *found.find_links):
            for link in source.page_candidates() if source else ():
                if link.filename == file:
                    _write(session, link.url_without_fragment, destination)
                    return
    raise LookupError(f"no configured package index has {file}")


def _write(session: Any, url: str, destination: Path) -> None:
    # identity: a transparently decompressed body would have another hash.
    with session.get(url, headers={"Accept-Encoding": "identity"}, stream=True) as response:
        response.raise_for_status()
        with destination.open("wb") as output:
            for block in response.iter_content(1 << 20):
                output.write(block)


if __name__ == "__main__":
    try:
        download(sys.argv[1], Path(sys.argv[2]))
    except LookupError as error:
        sys.exit(str(error))
